// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/path_scout.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "transport/msg/send_session.h"

namespace ztcp::msg {
namespace {

// Another port is tried after this time, or four round trips; after the first few, each time after
// twice as long.
constexpr Duration kFirstWait = std::chrono::milliseconds(50);
constexpr Duration kMostWait = std::chrono::milliseconds(1600);
constexpr int kSoon = 4;
// With 40 % of the packets lost, all these answers are missing once in a hundred times, after three
// timeouts in a row.
constexpr int kRequests = 5;
// A peer answers as often (Connection::answer_sparingly()).
constexpr Duration kLeastInterval = std::chrono::milliseconds(12);

}  // namespace

void PathScout::compare(TimePoint now, SendFlow& flow) {
  if (flow_ != nullptr) return;
  flow_ = &flow;
  wait_ = std::max(kFirstWait, 4 * flow.round_trip());
  dials_ = 0;
  dial(now);
}

void PathScout::stop() {
  drop_stream();
  flow_ = nullptr;
  next_ = kNever;
}

void PathScout::drop_stream() {
  opened_at_ = kNever;
  if (Stream* stream = std::exchange(stream_, nullptr)) stream->abort();
}

void PathScout::wait_until(TimePoint when) {
  next_ = when;
  session_.wake_at(when);
}

// Streams for sessions to come are more important.
void PathScout::dial(TimePoint now) {
  ++dials_;
  dialled_at_ = now;
  wait_until(now + wait_);
  if (!session_.dialer().has_spare()) return;
  if (const auto stream = session_.dialer().dial(now, *this)) stream_ = *stream;
}

void PathScout::on_open(TimePoint now, Stream& stream) {
  stream_ = &stream;
  opened_at_ = now;
  interval_ = std::max(kLeastInterval, 2 * (now - dialled_at_));
  requests_ = 0;
  ask(now);
}

void PathScout::on_failed(TimePoint, Error) {
  stream_ = nullptr;
  opened_at_ = kNever;
}

void PathScout::ask(TimePoint now) {
  ++requests_;
  flow_->ask_peer();
  wait_until(now + interval_);
}

void PathScout::on_timers(TimePoint now) {
  if (now < next_) return;
  const StreamStall stall = flow_->stall(now);
  if (!flow_->is_up() || stall.timeouts < kDoubtfulTimeouts || stall.is_shut) return stop();
  if (opened_at_ == kNever) {
    drop_stream();
    if (dials_ >= kSoon) wait_ = std::min(2 * wait_, std::max(wait_, kMostWait));
    return dial(now);
  }
  const bool was_heard = stall.silence <= now - opened_at_;
  if (was_heard) return stop();
  if (requests_ < kRequests || stall.timeouts < kDeadTimeouts) return ask(now);
  SendFlow& flow = *std::exchange(flow_, nullptr);
  Stream& stream = *std::exchange(stream_, nullptr);
  opened_at_ = next_ = kNever;
  session_.move_flow(now, flow, stream);
}

}  // namespace ztcp::msg
