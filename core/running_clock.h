// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Time that stands still while this process does: stopped by a signal or a debugger, frozen with
// its cgroup, or paused with its machine. A deadline computed before the stop, or from a time read
// before it, is as far away after it as before: so data that arrived meanwhile is processed first.
//
// at() belongs to one thread at a time; peek() may be called by any.
#pragma once

#include <atomic>

#include "core/clock.h"

namespace ztcp {

class RunningClock {
 public:
  // A gap between two readings counts as at most `longest_gap`. Scheduling delays are shorter.
  RunningClock(TimePoint real, Duration longest_gap) : longest_gap_(longest_gap), last_(real) {}

  TimePoint at(TimePoint real) {
    if (const Duration gap = real - last_; gap > longest_gap_) [[unlikely]]
      lag_.fetch_add((gap - longest_gap_).count(), std::memory_order_relaxed);
    last_ = real;
    return peek(real);
  }
  TimePoint peek(TimePoint real) const {
    return real - Duration(lag_.load(std::memory_order_relaxed));
  }

 private:
  const Duration longest_gap_;
  TimePoint last_;
  std::atomic<Duration::rep> lag_{0};
};

}  // namespace ztcp
