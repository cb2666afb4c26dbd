// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The switch's behaviour after a turn without frames: spin, then yield, then sleep ever longer, so
// that it answers within microseconds under traffic and uses no CPU without it. Where it shares
// CPUs with the processes it serves it never spins. Pure.
#pragma once

#include <algorithm>

#include "core/clock.h"

namespace ztcp::fabric {

class Idle {
 public:
  struct Limits {
    Duration spin;  // Zero where CPUs are shared.
    Duration yield = std::chrono::milliseconds(1);
    Duration max_sleep;
  };
  enum class Action : std::uint8_t { kSpin, kYield, kSleep };
  struct Step {
    Action action;
    Duration sleep{};
  };

  explicit Idle(const Limits& limits) : limits_(limits) {}

  void on_work() { idle_ = false; }
  // After a turn without work. Never sleeps past `deadline`.
  Step on_idle(TimePoint now, TimePoint deadline) {
    if (!idle_) {
      idle_ = true;
      since_ = now;
    }
    const Duration idle_for = now - since_;
    if (idle_for < limits_.spin) return {Action::kSpin, {}};
    if (idle_for < limits_.spin + limits_.yield || deadline <= now) return {Action::kYield, {}};
    // A sixteenth of the idle time so far: the sleep delays the end of a long pause only little.
    const Duration sleep = std::clamp<Duration>(idle_for / 16, kMinSleep, limits_.max_sleep);
    return {Action::kSleep, std::min(sleep, deadline == kNever ? sleep : deadline - now)};
  }

 private:
  static constexpr Duration kMinSleep = std::chrono::microseconds(50);

  Limits limits_;
  bool idle_ = false;
  TimePoint since_{};
};

}  // namespace ztcp::fabric
