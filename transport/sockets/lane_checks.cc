// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Periodic checks of a lane: deadlines of its streams, the interface's state, lost segments and
// rejected connections. Also probes a peer whose process is reported to have ended: if that drives
// its NIC itself, no kernel closes its connections.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <new>
#include <utility>

#include "transport/sockets/lane.h"

namespace ztcp::sockets {
namespace {

constexpr Duration kCheckInterval = std::chrono::milliseconds(10);
// More streams are checked round-robin, because their deadlines are seconds away.
constexpr std::size_t kStreamsPerCheck = 1024;
constexpr Duration kInterfaceInterval = std::chrono::seconds(1);
// How often each stream is checked.
constexpr Duration kLossInterval = std::chrono::minutes(1);
// A sound network loses less than one byte in 200. Fewer sent bytes than this prove nothing.
constexpr std::uint64_t kLossOneOf = 200;
constexpr std::uint64_t kLeastSentBytes = 4U << 20;

}  // namespace

void Lane::check(TimePoint now) {
  next_check_ = now + kCheckInterval;
  // By index, because give_up() may dial again and so add a stream.
  for (std::size_t n = std::min(streams_.size(), kStreamsPerCheck); n != 0; --n) {
    if (next_checked_ >= streams_.size()) next_checked_ = 0;
    SocketStream& stream = *streams_[next_checked_++];
    if (!stream.is_gone() && stream.deadline() <= now) stream.give_up(now);
  }
  check_for_log(now);
}

// Without memory for a log line the line is left out, and the turn goes on.
void Lane::check_for_log(TimePoint now) {
  try {
    if (now >= next_interface_check_) check_interface(now);
    if (now >= next_loss_check_) check_losses(now);
    if (stranger_log_.is_due(now)) check_strangers(now);
  } catch (const std::bad_alloc&) {
    // A condition that lasts is logged by a later check.
  }
}

// Only the lane with the listener logs a change, so that a device logs it once.
void Lane::check_interface(TimePoint now) {
  next_interface_check_ = now + kInterfaceInterval;
  const auto living = std::find_if(streams_.begin(), streams_.end(),
                                   [](const auto& stream) { return !stream->is_gone(); });
  // A lane with neither a listener nor a live stream has no socket to ask.
  if (!listener_.fd && living == streams_.end()) return;
  const int socket = listener_.fd ? listener_.fd.get() : (*living)->fd();
  const InterfaceState state = interface_state(socket, config_.device.interface);
  if (state == interface_state_.exchange(state, std::memory_order_relaxed)) return;
  const bool is_up = state == InterfaceState::kUp;
  state_.store(is_up ? LinkState::kUp : LinkState::kDown, std::memory_order_relaxed);
  if (!listener_.fd) return;
  if (is_up)
    path_log_.link_up(now, config_.device.interface + " of this host is up again");
  else
    path_log_.link_down(now, interface_advice(state, config_.device.interface));
}

void Lane::check_losses(TimePoint now) {
  const std::size_t count = std::max<std::size_t>(streams_.size(), 1);
  next_loss_check_ = now + kLossInterval / static_cast<Duration::rep>(count);
  if (streams_.empty()) return;
  SocketStream& stream = *streams_[checked_for_losses_++ % streams_.size()];
  if (stream.is_gone() || stream.has_call_out()) return;
  const SentBytes sent = stream.sent();
  const SentBytes before = std::exchange(stream.sent_before, sent);
  const TimePoint since = std::exchange(stream.checked_at, now);
  if (since == TimePoint::min()) return;
  const std::uint64_t all = sent.all - before.all;
  const std::uint64_t repeated = sent.repeated - before.repeated;
  if (all < kLeastSentBytes || repeated * kLossOneOf < all) return;
  path_log_.loss(now, peer_of(stream.fd()).address, repeated, all, now - since);
}

void Lane::check_strangers(TimePoint now) {
  const auto totals =
      stats::totals_of(msg::kStrangerCounters, sessions_.acceptor().counters().strangers);
  const Device& device = config_.device;
  const auto text = stranger_log_.check(now, totals, ports_text(device, listener_.endpoint));
  if (text) deferred_log_.add(log::Level::kWarn, [&] { return device.name + ": " + *text; });
}

void Lane::probe(IpAddress remote) {
  for (const auto& stream : streams_)
    if (stream->leads_to(remote)) stream->ask_for_answer();
}

TimePoint Lane::heard_from(TimePoint now, IpAddress remote) const {
  TimePoint heard = TimePoint::min();
  for (const auto& stream : streams_)
    if (stream->leads_to(remote)) heard = std::max(heard, now - stream->silence());
  return heard;
}

}  // namespace ztcp::sockets
