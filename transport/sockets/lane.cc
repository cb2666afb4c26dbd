// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/lane.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>

#include "transport/comms/counter_list.h"

namespace ztcp::sockets {
namespace {

constexpr std::size_t kEventsPerTurn = 64;
constexpr std::uint32_t kStreamEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
// While one stream is read directly, epoll is polled in one of so many turns, or after this time.
constexpr int kTurnsPerPoll = 4;
constexpr Duration kPollInterval = std::chrono::milliseconds(1);
// A caller that only posts sends must receive its credits, too, on any stream. The peer grants
// credit every 16 messages, and 32 may be in flight: receive in one of 8 turns that take posts.
constexpr int kPostsPerReceive = 8;
// Data that becomes sendable while streams send is sent in the same turn, in so many rounds.
constexpr int kSendRounds = 4;
// The kernel is asked how much the peer has acknowledged when bytes have arrived, else at this
// interval, which is shorter than a round trip; for so many streams in one turn.
constexpr Duration kDeliveryInterval = std::chrono::microseconds(5);
constexpr std::size_t kDeliveriesPerTurn = 8;
constexpr Duration kOncePer = std::chrono::minutes(1);
// An ordinary job needs no more.
constexpr std::size_t kDescriptorsAtOnce = 512;

// Enlarges the process's descriptor table now, so that socket() and accept() in a turn need not.
// The kernel then waits until no thread can see the old table (RCU), 10 ms or much longer.
void make_room_for_descriptors(int fd, std::size_t count) {
  const Fd behind_them(fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(count)));
}

}  // namespace

Result<std::unique_ptr<Lane>> Lane::open(LaneConfig config, Listening listener) {
  if (config.descriptors == nullptr) config.descriptors = std::make_shared<DescriptorBudget>();
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail(to_errc(errno), "epoll_create1", errno);
  make_room_for_descriptors(epoll.get(), std::min(config.descriptors->left(), kDescriptorsAtOnce));
  auto wake = ZTCP_TRY(WakeEvent::make());
  std::unique_ptr<Lane> lane(
      new Lane(std::move(config), std::move(epoll), std::move(wake), std::move(listener)));
  if (lane->listener_.fd && !lane->watch(lane->listener_.fd.get(), nullptr, EPOLLIN | EPOLLET))
    return fail_errno("epoll_ctl");
  return lane;
}

Lane::Lane(LaneConfig config, Fd epoll, std::shared_ptr<WakeEvent> wake, Listening listener)
    : StreamHost(bulk_calls_),
      config_(std::move(config)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      listener_(std::move(listener)),
      path_log_(config_.device.name, deferred_log_, config_.device.interface,
                config_.device.mtu_bytes),
      bulk_calls_(config_.workers, worker_threads_),
      descriptors_(*config_.descriptors),
      scratch_(new std::byte[SocketStream::kScratchBytes]),
      sessions_(config_.session, config_.cluster_key, config_.max_pending_streams, config_.secret,
                *this) {
  if (config_.places != nullptr) sessions_.acceptor().share(*config_.places, config_.place);
  if (config_.budget != nullptr) sessions_.count_in(*config_.budget);
  if (config_.rx_placement != nullptr) sessions_.acceptor().spread_over(*config_.rx_placement);
}

// Workers finish their calls before the streams are destroyed.
Lane::~Lane() { worker_threads_.stop(); }

void Lane::start() {
  if (config_.workers == 0) return;
  const Status started =
      worker_threads_.start(config_.workers, config_.worker_options,
                            [this](std::size_t worker) { return bulk_calls_.work(worker); });
  if (!started)
    deferred_log_.add(log::Level::kWarn, [&] {
      return fmt::format(
          "{}: only {} of {} workers could be started ({}, error {}): large messages take longer; "
          "raise ulimit -u or pids.max of the job's cgroup",
          config_.device.name, worker_threads_.count(), config_.workers, started.error().where,
          started.error().sys_errno);
    });
}

bool Lane::watch(int fd, SocketStream* stream, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = stream;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool Lane::watch(SocketStream& stream) { return watch(stream.fd(), &stream, kStreamEvents); }

// Reserves a place for the stream in every list, so that no later turn has to allocate.
SocketStream& Lane::add(std::unique_ptr<SocketStream> stream) {
  if (streams_.size() == streams_.capacity()) {
    constexpr std::size_t kLeast = 16;
    const std::size_t most = std::max(kLeast, 2 * streams_.size());
    for (auto* list : {&readable_, &sendable_, &sending_, &undelivered_}) list->reserve(most);
    streams_.reserve(most);
  }
  streams_.push_back(std::move(stream));
  descriptors_.set(streams_.size());
  return *streams_.back();
}

// --- Streams -------------------------------------------------------------------------------------

void Lane::on_sendable(SocketStream& stream) {
  if (std::exchange(stream.in_send_list, true)) return;
  sendable_.push_back(&stream);
}

void Lane::on_delivery_asked(SocketStream& stream) { undelivered_.push_back(&stream); }

// Called repeatedly while the window is closed. Each call moves the kernel's limit on, so that its
// next window probe comes before the limit; a peer that stops answering fails at the last limit.
void Lane::on_shut_window(const Fd& fd, Duration lasted) {
  constexpr Duration kSlack = std::chrono::seconds(1);
  if (lasted == Duration::zero() || silence(fd) <= config_.times.user_timeout + kSlack)
    limit_silence(fd, config_.times, lasted);
}

// close() does not end epoll's watch while a forked child still has the descriptor, and an event
// would then point at a destroyed stream.
void Lane::on_gone(SocketStream& stream) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream.fd(), nullptr);
  likely_.forget(stream);
  if (direct_ == &stream) direct_ = nullptr;
  has_gone_ = true;
}

// --- A turn --------------------------------------------------------------------------------------

// Posted messages are sent, and posted buffers are known, before sockets are read. A turn that took
// posts leaves most reading to the next turn, because a call so early would rarely find data.
comms::TurnOutcome Lane::turn(TimePoint now, comms::Doorbell& doorbell) {
  const std::uint64_t bytes_before = counters_.sent_bytes + counters_.received_bytes;
  const std::uint64_t received_before = counters_.received_bytes;
  const bool collected = collect_calls(now);
  bool moved = false;
  doorbell.drain([&](std::size_t client) { moved |= clients_.on_doorbell(client, now); });
  if (!moved || ++posts_since_receive_ >= kPostsPerReceive) {
    posts_since_receive_ = 0;
    moved |= receive(now, /*asks_all=*/moved);
  }
  moved |= collected;
  sessions_.on_timers(now);
  if (!undelivered_.empty()) tell_deliveries(now, counters_.received_bytes != received_before);
  moved |= send_all(now);
  if (now >= next_check_) check(now);
  if (has_gone_ || clients_.has_retired()) [[unlikely]]
    reap(now);
  if (!pending_.empty() || has_dealt_.load(std::memory_order_acquire)) [[unlikely]]
    moved |= serve_pending(now);
  return {.moved = moved,
          .leaves_unsent = counters_.queued_bytes != 0,
          .moved_bytes = counters_.sent_bytes + counters_.received_bytes - bytes_before};
}

bool Lane::receive(TimePoint now, bool asks_all) {
  if (SocketStream* const likely = likely_.get(); likely != direct_) [[unlikely]]
    read_directly(likely);
  if (direct_ != nullptr) {
    direct_->expect();
    note_readable(*direct_);
  }
  bool has_come = false;
  if (direct_ == nullptr || asks_all || direct_->has_call_out() ||
      ++turns_since_poll_ >= kTurnsPerPoll || now >= next_poll_) {
    turns_since_poll_ = 0;
    next_poll_ = now + kPollInterval;
    has_come = poll(now);
  }
  return receive_all(now) || has_come;
}

// Reads `stream` in every turn without EPOLLIN, which would cost the kernel an event for each
// arriving segment, and the turn a call to get it. Null: none.
void Lane::read_directly(SocketStream* stream) {
  const auto set = [&](SocketStream& of, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &of;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, of.fd(), &event);
  };
  if (direct_ != nullptr) {
    set(*direct_, kStreamEvents);
    direct_->set_direct(false);
  }
  if (stream != nullptr) {
    set(*stream, kStreamEvents & ~std::uint32_t{EPOLLIN});
    stream->set_direct(true);
  }
  direct_ = stream;
}

void Lane::note_readable(SocketStream& stream) {
  if (stream.is_readable() && !std::exchange(stream.in_ready_list, true))
    readable_.push_back(&stream);
}

// True: a connection was accepted.
bool Lane::poll(TimePoint now) {
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    auto* const stream = static_cast<SocketStream*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (stream == nullptr) {
      must_accept_ = true;
      continue;
    }
    stream->on_ready(now, events[static_cast<std::size_t>(i)].events);
    note_readable(*stream);
  }
  return accept_all(now);
}

// Takes back the calls that workers have finished.
bool Lane::collect_calls(TimePoint now) {
  return bulk_calls_.collect([&](BulkCall& call) {
    SocketStream& stream = *call.stream;
    stream.on_call_done(now);
    note_readable(stream);
    if (stream.is_gone()) has_gone_ = true;  // It can be destroyed now.
  });
}

bool Lane::receive_all(TimePoint now) {
  bool moved = false;
  const std::span scratch(scratch_.get(), SocketStream::kScratchBytes);
  // The list is changed after all calls, because any of these may throw std::bad_alloc.
  for (SocketStream* const stream : readable_) {
    if (!stream->is_readable() || !stream->receive(now, scratch)) continue;
    moved = true;
    if (!stream->is_gone()) likely_.note(*stream);
  }
  std::erase_if(readable_, [](SocketStream* stream) {
    stream->in_ready_list = stream->is_readable();
    return !stream->in_ready_list;
  });
  return moved;
}

bool Lane::send_all(TimePoint now) {
  bool moved = false;
  for (int round = 0; round < kSendRounds && !sendable_.empty(); ++round) {
    sending_.swap(sendable_);
    for (SocketStream* const stream : sending_) {
      stream->in_send_list = false;
      if (stream->is_gone()) continue;
      moved |= stream->send(now);
      if (!stream->is_gone() && stream->wants_to_send()) on_sendable(*stream);
    }
    sending_.clear();
  }
  return moved;
}

// Round-robin. A user may write more when notified; its stream then stays in the list.
void Lane::tell_deliveries(TimePoint now, bool has_come) {
  if (!has_come && now < next_delivery_) return;
  next_delivery_ = now + kDeliveryInterval;
  for (std::size_t n = std::min(undelivered_.size(), kDeliveriesPerTurn); n != 0; --n) {
    if (next_undelivered_ >= undelivered_.size()) next_undelivered_ = 0;
    SocketStream& stream = *undelivered_[next_undelivered_];
    if (!stream.tell_delivery(now)) {
      ++next_undelivered_;
      continue;
    }
    stream.in_delivery_list = false;
    undelivered_[next_undelivered_] = undelivered_.back();
    undelivered_.pop_back();
  }
}

void Lane::reap(TimePoint now) {
  if (std::exchange(has_gone_, false)) {
    const auto is_gone = [](const SocketStream* stream) { return stream->is_gone(); };
    std::erase_if(readable_, is_gone);
    std::erase_if(sendable_, is_gone);
    std::erase_if(sending_, is_gone);  // Not empty after a send_all() that threw.
    std::erase_if(undelivered_, is_gone);
    std::erase_if(streams_,
                  [](const auto& stream) { return stream->is_gone() && !stream->has_call_out(); });
    descriptors_.set(streams_.size());
  }
  if (!clients_.has_retired()) return;
  clients_.reap_retired();
  if (!clients_.is_empty() || now < next_nobody_left_) return;
  next_nobody_left_ = now + kOncePer;
  deferred_log_.add(log::Level::kInfo, [&] {
    return config_.device.name + ": no connection is left; so far it " + summary();
  });
}

// Leaves out the deadlines of streams: they are seconds away, and no sleep delays them noticeably.
TimePoint Lane::next_deadline() const {
  const TimePoint deadline = sessions_.next_deadline();
  return pending_.empty() ? deadline : std::min(deadline, next_pending_check_);
}

std::size_t Lane::unfinished() const {
  const auto open = std::count_if(streams_.begin(), streams_.end(), [](const auto& stream) {
    return !stream->is_gone() &&
           (stream->has_to_send() || stream->state() == SocketStream::State::kEnding);
  });
  return static_cast<std::size_t>(open) + sessions_.finishing();
}

// --- Log -----------------------------------------------------------------------------------------

std::string Lane::losses() const {
  std::uint64_t segments = counters_.retransmissions;
  for (const auto& stream : streams_)
    if (!stream->is_gone()) segments += stream->retransmissions();
  return fmt::format("the kernel sent {} segments again", segments);
}

std::string Lane::summary() const {
  std::string text = fmt::format(
      "sent {} bytes in {} calls, received {} bytes in {} calls, copied {} of those bytes once "
      "more; {}",
      counters_.sent_bytes, counters_.send_calls, counters_.received_bytes, counters_.receive_calls,
      counters_.copied_bytes, losses());
  if (counters_.worker_calls != 0)
    text += fmt::format(", {} pieces were moved by workers", counters_.worker_calls);
  if (groups_.posted != 0)
    text += fmt::format(", {} grouped receives of up to {}", groups_.posted, groups_.largest);
  const LaneCounts from = counts();
  return comms::CounterList(std::move(text))
      .add(msg::kStrangerCounters, from.acceptor.strangers)
      .add(lane_counter::kUnusual, from)
      .text();
}

LaneCounts Lane::counts() const {
  return {.streams = counters_,
          .acceptor = sessions_.acceptor().counters(),
          .redials = path_log_.flows_redialled()};
}

void Lane::read_counters(stats::CounterValues& to) const {
  const LaneCounts from = counts();
  stats::add_to(to, msg::kStrangerCounters, from.acceptor.strangers);
  stats::add_to(to, lane_counter::kUsual, from);
  stats::add_to(to, lane_counter::kUnusual, from);
}

}  // namespace ztcp::sockets
