// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The longest recent gap between two turns of whoever drives the stack. A poller that was not
// scheduled once will be kept waiting again: the short gaps in between must not make it forget, and
// a single long one must not be held against it for ever. Owned by a Stack.
#pragma once

#include <algorithm>
#include <chrono>

#include "transport/core/clock.h"

namespace ztcp::tcp {

class PollGaps {
 public:
  // Holds what comes round: schedulers' slices, and the 100 ms for which CPU quotas are given.
  static constexpr Duration kWindow = std::chrono::seconds(1);

  // Of each turn: gaps are forgotten here, too.
  void note(TimePoint now, Duration gap) {
    if (now - window_start_ >= kWindow) {
      older_ = now - window_start_ < 2 * kWindow ? newer_ : Duration::zero();
      newer_ = Duration::zero();
      window_start_ = now;
    }
    newer_ = std::max(newer_, gap);
  }
  // The longest of the last one to two windows.
  Duration longest() const { return std::max(older_, newer_); }

 private:
  TimePoint window_start_{};
  Duration older_{};
  Duration newer_{};
};

}  // namespace ztcp::tcp
