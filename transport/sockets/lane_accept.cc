// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Accepting connections and dealing them out to the lanes of the device.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>

#include "transport/msg/record.h"
#include "transport/sockets/lane.h"

namespace ztcp::sockets {
namespace {

constexpr std::size_t kAcceptsPerTurn = 8;
// A device with several lanes deals a connection by its first record, which it awaits so long, for
// so many pending connections at once.
constexpr Duration kPendingTimeout = std::chrono::milliseconds(20);
constexpr Duration kPendingInterval = std::chrono::milliseconds(1);
constexpr Duration kFirstCheck = std::chrono::microseconds(50);
constexpr std::size_t kMostPending = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

// Whether the accept queue holds a connection.
bool is_awaited(const Fd& listener) {
  pollfd queue{.fd = listener.get(), .events = POLLIN, .revents = 0};
  return poll(&queue, 1, 0) != 0;
}

}  // namespace

// True: a connection was accepted.
bool Lane::accept_all(TimePoint now) {
  if (!must_accept_ || now < accept_again_) return false;
  std::size_t count = 0;
  try {
    while (count < kAcceptsPerTurn && accept_next(now)) ++count;
  } catch (const std::bad_alloc&) {
    accept_again_ = now + kAcceptPause;  // The connection is closed, and its peer redials.
  }
  return count != 0;
}

// False: no more for now.
bool Lane::accept_next(TimePoint now) {
  // Without a free descriptor, connections wait in the accept queue until one becomes free.
  const bool has_room = config_.descriptors->has_room();
  if (!has_room && !is_awaited(listener_.fd)) return must_accept_ = false;
  auto accepted = has_room ? sockets::accept(listener_.fd, config_.times, config_.device.dscp)
                           : fail(Errc::kOutOfMemory, "accept: descriptors", EMFILE);
  if (!accepted) {
    accept_again_ = now + kAcceptPause;
    note_shortage(now, accepted.error());
    return false;
  }
  must_accept_ = accepted->has_value();
  if (!must_accept_) return false;
  if (dealt_to_.empty()) {
    take(now, std::move(**accepted));
  } else if (pending_.size() >= kMostPending) {
    deal(now, std::move(**accepted), std::nullopt);
  } else {
    pending_.push_back({std::move(**accepted), now + kPendingTimeout});
    const TimePoint first_check = now + kFirstCheck;
    next_pending_check_ =
        pending_.size() == 1 ? first_check : std::min(next_pending_check_, first_check);
  }
  return true;
}

// A connection for which there is no memory is closed, and its peer redials. True: connections had
// been dealt to this lane.
bool Lane::serve_pending(TimePoint now) {
  const bool has_dealt = has_dealt_.load(std::memory_order_acquire);
  try {
    take_dealt(now);
    if (now >= next_pending_check_) check_pending(now);
  } catch (const std::bad_alloc&) {
    accept_again_ = now + kAcceptPause;
  }
  return has_dealt;
}

// A hello follows its connection at once. A connection that sends nothing in time, or anything
// else, is dealt to any lane, which refuses it. One that was closed is dropped: such a peer only
// asked whether this process listens.
void Lane::check_pending(TimePoint now) {
  next_pending_check_ = now + kPendingInterval;
  std::array<std::byte, msg::kSessionKnownBytes> first;
  for (auto next = pending_.begin(); next != pending_.end();) {
    const ssize_t got =
        recv(next->accepted.fd.get(), first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
    const bool is_known = got == static_cast<ssize_t>(first.size());
    const bool has_gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    if (!is_known && !has_gone && now < next->until) {
      ++next;
      continue;
    }
    Accepted accepted = std::move(next->accepted);
    next = pending_.erase(next);
    if (!has_gone) deal(now, std::move(accepted), is_known ? msg::session_of(first) : std::nullopt);
  }
}

// A session that connects again, because its receive queue was refused, keeps its lane.
std::uint8_t Lane::assign(std::optional<std::uint64_t> session) {
  if (session)
    for (const Assignment& earlier : assignments_)
      if (earlier.session == *session) return earlier.place;
  const auto place = static_cast<std::uint8_t>(next_dealt_to_);
  next_dealt_to_ = (next_dealt_to_ + 1) % dealt_to_.size();
  if (session) assignments_[assignment_count_++ % assignments_.size()] = {*session, place};
  return place;
}

void Lane::deal(TimePoint now, Accepted accepted, std::optional<std::uint64_t> session) {
  std::optional<std::uint8_t> place;
  if (session) place = config_.places->find(*session);
  if (!place) {
    const std::uint8_t next = assign(session);
    place = config_.places->better_place(next, 1).value_or(next);
  }
  Lane& lane = *dealt_to_[*place];
  if (&lane == this) return take(now, std::move(accepted));
  {
    const std::lock_guard lock(lane.dealt_mutex_);
    lane.dealt_.push_back(std::move(accepted));
    lane.has_dealt_.store(true, std::memory_order_release);
  }
  lane.wake_->signal();
}

// Takes one at a time, so that the others stay if there is no memory for it.
void Lane::take_dealt(TimePoint now) {
  while (has_dealt_.load(std::memory_order_acquire)) {
    std::unique_lock lock(dealt_mutex_);
    Accepted accepted = std::move(dealt_.back());
    dealt_.pop_back();
    has_dealt_.store(!dealt_.empty(), std::memory_order_relaxed);
    lock.unlock();
    take(now, std::move(accepted));
  }
}

// Connections from this host's own address do not pass the NIC.
std::optional<std::uint32_t> Lane::rx_queue_of(const Accepted& accepted) {
  if (config_.rx_placement == nullptr || accepted.remote.address == config_.device.address)
    return std::nullopt;
  const auto queue = config_.read_rx_queue(accepted.fd);
  if (!queue && config_.rx_placement->note_untold())
    deferred_log_.add(log::Level::kInfo, [&] {
      return fmt::format(
          "{}: flows are not spread over its {} RX queues: the driver does not report the queue of "
          "a flow from {}",
          config_.device.name, config_.device.rx_queues, to_string(accepted.remote.address));
    });
  return queue;
}

// Without a descriptor to spare the connection is reset, and its peer redials.
void Lane::take(TimePoint now, Accepted accepted) {
  if (!config_.descriptors->may_keep(accepted.fd.get())) {
    note_shortage(now, {Errc::kOutOfMemory, EMFILE, "accept: descriptors"});
    return reset(std::move(accepted.fd));
  }
  const auto rx_queue = rx_queue_of(accepted);
  SocketStream& stream = add(std::make_unique<SocketStream>(
      host(), counters_, std::move(accepted.fd), SocketStream::State::kOpen, nullptr, kNever));
  StreamEvents* const events =
      watch(stream)
          ? sessions_.acceptor().on_accept(now, stream, accepted.remote, has_spare_for(0), rx_queue)
          : nullptr;
  if (events == nullptr) {
    stream.abort();
  } else {
    stream.set_events(*events);
  }
}

}  // namespace ztcp::sockets
