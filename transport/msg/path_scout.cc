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
// A peer that answers nowhere for so many intervals is silent, and nothing can be compared.
constexpr int kMostIntervals = 20;

}  // namespace

void PathScout::compare_with_new_stream(TimePoint now, FlowSet flows) {
  if (flows_.any()) return;
  flows_ = flows;
  wait_ = std::max(kFirstWait, 4 * longest_round_trip());
  dials_ = 0;
  dial(now);
}

void PathScout::compare_with_siblings(TimePoint now, FlowSet flows) {
  if (begun_at_ != kNever) return;
  stop();
  flows_ = flows;
  begin(now, longest_round_trip());
}

void PathScout::find_other_path(TimePoint now, std::size_t flow) {
  is_path_bad_ = true;
  flows_.set(flow);
  wait_ = std::max(kFirstWait, 4 * longest_round_trip());
  dial(now);
}

void PathScout::leave_path(TimePoint now) {
  std::size_t index = 0;
  while (!flows_[index]) ++index;
  SendFlow& flow = session_.flow(index);
  Stream* const stream =
      begun_at_ != kNever && flow.is_up() ? std::exchange(stream_, nullptr) : nullptr;
  stop();
  if (stream != nullptr) session_.leave_path(now, flow, *stream);
}

Duration PathScout::longest_round_trip() const {
  Duration longest{};
  for (std::size_t i = 0; i < kMaxFlows; ++i)
    if (flows_[i]) longest = std::max(longest, session_.flow(i).round_trip());
  return longest;
}

void PathScout::stop() {
  drop_stream();
  flows_.reset();
  is_path_bad_ = false;
  next_ = kNever;
}

void PathScout::drop_stream() {
  begun_at_ = kNever;
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
  if (!is_path_bad_) return begin(now, now - dialled_at_);
  begun_at_ = now;
  wait_until(now);  // hand_over() is not allowed inside an event.
}

void PathScout::on_failed(TimePoint, Error) {
  stream_ = nullptr;
  begun_at_ = kNever;
}

void PathScout::begin(TimePoint now, Duration round_trip) {
  begun_at_ = now;
  interval_ = std::max(kLeastInterval, 2 * round_trip);
  answers_ = 0;
  ask(now);
}

void PathScout::ask(TimePoint now) {
  asked_at_ = now;
  for (std::size_t i = 0; i < kMaxFlows; ++i)
    if (flows_[i]) session_.flow(i).ask_peer();
  if (stream_ != nullptr)
    stream_->ask_peer();
  else
    session_.is_peer_answering_since(now, asked_at_, flows_);
  wait_until(now + interval_);
}

bool PathScout::was_answered_elsewhere(TimePoint now) {
  if (stream_ != nullptr) return stream_->stall(now).silence <= now - asked_at_;
  return session_.is_peer_answering_since(now, asked_at_, flows_);
}

void PathScout::on_timers(TimePoint now) {
  if (now < next_) return;
  if (is_path_bad_) return leave_path(now);
  FlowSet dead;
  for (std::size_t i = 0; i < kMaxFlows; ++i) {
    if (!flows_[i]) continue;
    const StreamStall stall = session_.flow(i).stall(now);
    const bool was_heard = begun_at_ != kNever && stall.silence <= now - begun_at_;
    flows_[i] = session_.flow(i).is_up() && stall.timeouts >= kDoubtfulTimeouts && !stall.is_shut &&
                !was_heard;
    dead[i] = flows_[i] && stall.timeouts >= kDeadTimeouts;
  }
  if (flows_.none()) return stop();
  if (begun_at_ == kNever) {
    drop_stream();
    if (dials_ >= kSoon) wait_ = std::min(2 * wait_, std::max(wait_, kMostWait));
    return dial(now);
  }
  if (!was_answered_elsewhere(now))
    return now - begun_at_ < kMostIntervals * interval_ ? wait_until(now + interval_) : stop();
  if (++answers_ < kRequests || dead.none()) return ask(now);
  Stream* const stream = std::exchange(stream_, nullptr);
  stop();
  session_.move_flows(now, dead, stream);
}

}  // namespace ztcp::msg
