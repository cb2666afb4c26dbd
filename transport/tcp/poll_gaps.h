// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The longest recent gap between two turns of the thread that drives the stack. A poller that was
// once not scheduled will be delayed again: the short gaps in between must not hide the long one,
// and a single long one must not count for ever. Owned by a Stack.
#pragma once

#include <algorithm>
#include <chrono>

#include "core/clock.h"

namespace ztcp::tcp {

class PollGaps {
 public:
  // Longer than recurring delays: schedulers' slices, and the 100 ms period of CPU quotas.
  static constexpr Duration kWindow = std::chrono::seconds(1);

  // To be called each turn: old gaps are dropped here, too.
  void note(TimePoint now, Duration gap) {
    if (now - window_start_ >= kWindow) {
      older_ = now - window_start_ < 2 * kWindow ? newer_ : Duration::zero();
      newer_ = Duration::zero();
      window_start_ = now;
    }
    newer_ = std::max(newer_, gap);
  }
  // Longest gap of the last one to two windows.
  Duration longest() const { return std::max(older_, newer_); }

 private:
  TimePoint window_start_{};
  Duration older_{};
  Duration newer_{};
};

}  // namespace ztcp::tcp
