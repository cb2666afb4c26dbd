// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Tests whether packets of a given size get through (the idea of RFC 4821 and RFC 8899, for one
// size at a time). A probe is one segment that lies wholly below the first unacknowledged number:
// the peer drops such bytes as old and reports them by a D-SACK (RFC 2883), so a probe needs no
// data and disturbs none. Without an answer it is repeated, beside small segments for comparison:
// if only the small ones are answered, the packets are too large for the path and no router
// reported it.
//
// Four causes: a new connection tests its full size; repeated timeouts of full segments, on a
// connection that otherwise answers, test whether their size is the reason; a connection that was
// therefore cut to a smaller size tests whether that was right (queues that stay full lose large
// packets and let small ones in); and later, from time to time, it tests the full size again. The
// waits of the first are for peers without D-SACK (Linux with tcp_dsack = 0): their answer is a
// repeated ACK, which refers to the probe only while nothing else is in flight. Owned by a
// Connection.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/seq_num.h"
#include "transport/wire/tcp_options.h"

namespace ztcp::tcp {

class PathProbe {
 public:
  enum class Cause : std::uint8_t { kConnect, kTimeouts, kConfirm, kRaise };
  // kTooLarge: small packets are answered, those of the probe's size are not. kUnknown: no answer,
  // and the small ones prove nothing either; probing has ended.
  enum class Verdict : std::uint8_t { kNone, kTooLarge, kUnknown };

  // Rounds in which only the small segment was answered. Random loss would have to hit every probe
  // and spare every small segment.
  static constexpr int kRoundsForVerdict = 3;
  static constexpr int kConnectProbes = 10;
  static constexpr int kTimeoutProbes = 6;
  static constexpr int kConfirmProbes = 20;
  static constexpr int kRaiseProbes = 3;
  static constexpr Duration kWait = std::chrono::milliseconds(100);
  static constexpr Duration kConfirmWait = std::chrono::milliseconds(125);

  // Makes the first probe due at once.
  void begin(TimePoint now, Cause cause) {
    const SeqNum begin = begin_;
    const SeqNum end = end_;
    *this = PathProbe{};
    begin_ = begin;
    end_ = end;
    cause_ = cause;
    active_ = due_ = true;
    started_ = now;
  }
  // A probe that was sent may still be answered.
  void stop() { active_ = due_ = false; }
  void reset() { *this = PathProbe{}; }

  bool is_active() const { return active_; }
  bool is_due() const { return due_; }
  Cause cause() const { return cause_; }
  TimePoint started() const { return started_; }
  SeqNum first() const { return begin_; }  // First byte of the latest probe.
  // At connect the first probe goes alone: on a good path no comparison is needed.
  bool wants_comparison() const {
    return cause_ == Cause::kTimeouts || (cause_ == Cause::kConnect && probes_ % 2 == 1);
  }
  // Any answer now is the probe's.
  bool is_alone() const { return active_ && cause_ == Cause::kConnect && probes_ % 2 == 1; }
  TimePoint deadline() const { return active_ && !due_ ? deadline_ : kNever; }

  // `least_wait`: time by which an answer would have arrived.
  void on_sent(TimePoint now, SeqNum begin, SeqNum end, Duration least_wait) {
    compared_ = wants_comparison();
    due_ = false;
    begin_ = begin;
    end_ = end;
    sent_ = now;
    ++probes_;
    Duration wait = cause_ == Cause::kTimeouts ? Duration::zero() : kWait;
    if (cause_ == Cause::kConfirm) wait = kConfirmWait;
    deadline_ = now + std::max(wait, least_wait);
  }
  // Whether the first block of an ACK reports the latest probe: it must cover it.
  bool is_answered_by(const wire::SackBlock& block) const {
    return begin_.before(end_) && SeqNum(block.begin).at_or_before(begin_) &&
           end_.at_or_before(SeqNum(block.end));
  }
  // The wait is over. `small_answered`: when the peer last answered a small segment.
  Verdict on_timer(TimePoint small_answered) {
    if (compared_ && small_answered > sent_) ++rounds_;
    // A peer that sends nothing at all is left to other timers.
    const bool enough = cause_ == Cause::kTimeouts || probes_ >= kConnectProbes;
    if (rounds_ >= kRoundsForVerdict && enough) return Verdict::kTooLarge;
    if (cause_ != Cause::kConnect && probes_ >= most_probes()) {
      stop();
      return Verdict::kUnknown;
    }
    due_ = true;
    return Verdict::kNone;
  }

 private:
  int most_probes() const {
    if (cause_ == Cause::kConfirm) return kConfirmProbes;
    return cause_ == Cause::kRaise ? kRaiseProbes : kTimeoutProbes;
  }

  Cause cause_ = Cause::kConnect;
  bool active_ = false;
  bool due_ = false;
  bool compared_ = false;
  int probes_ = 0;
  int rounds_ = 0;
  SeqNum begin_;  // The latest probe's bytes.
  SeqNum end_;
  TimePoint sent_{};
  TimePoint deadline_ = kNever;
  TimePoint started_{};
};

}  // namespace ztcp::tcp
