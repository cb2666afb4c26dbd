// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether packets of full size get through (the idea of RFC 4821, for one size). The side that
// opened a connection sends one segment of full size right away, all of it below the first
// sequence number: a peer drops such bytes as old and says so with a D-SACK (RFC 2883), so the
// probe needs no data and disturbs none. Without an answer it is repeated, every other time with a
// small segment for comparison; when only the small ones are answered, the path's MTU is too small
// and nobody said so. The times between are for peers without D-SACK (Linux with tcp_dsack = 0):
// all they answer is an ACK that repeats the last, which means the probe only while it is alone.
// Owned by a Connection.
#pragma once

#include <chrono>
#include <cstdint>

#include "transport/core/clock.h"

namespace ztcp::tcp {

class PathProbe {
 public:
  static constexpr int kMaxProbes = 8;
  static constexpr Duration kFirstWait = std::chrono::milliseconds(100);
  static constexpr Duration kMostWait = std::chrono::milliseconds(500);

  // Probing begins at once.
  void begin(TimePoint now) {
    *this = PathProbe{};
    active_ = due_ = true;
    started_ = now;
  }
  void stop() { *this = PathProbe{}; }

  bool is_active() const { return active_; }
  bool is_due() const { return due_; }
  // The first probe goes alone: on a good path nothing needs comparing.
  bool wants_comparison() const { return probes_ % 2 == 1; }
  // Whatever answers now answers a probe.
  bool is_alone() const { return active_ && probes_ % 2 == 1; }
  TimePoint deadline() const { return active_ && !due_ ? deadline_ : kNever; }

  void on_sent(TimePoint now) {
    due_ = false;
    ++probes_;
    deadline_ = now + wait_;
    wait_ = wait_ * 2 < kMostWait ? wait_ * 2 : kMostWait;
  }
  // The wait is over. `heard`: when the peer last said anything. True: the path's MTU is too
  // small. A peer that says nothing at all is for other timers to judge.
  bool on_timer(TimePoint heard) {
    due_ = true;
    return probes_ >= kMaxProbes && heard > started_;
  }

 private:
  bool active_ = false;
  bool due_ = false;
  int probes_ = 0;
  Duration wait_ = kFirstWait;
  TimePoint deadline_ = kNever;
  TimePoint started_{};
};

}  // namespace ztcp::tcp
