// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Time as the engine sees it: always an argument, never read from a clock.
#pragma once

#include <chrono>

namespace ztcp {

using Duration = std::chrono::nanoseconds;

// A clock without now(): protocol code can only be told the time. The poller reads the real clock
// once per turn; the simulator invents it.
struct EngineClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<EngineClock>;
  static constexpr bool is_steady = true;
};
using TimePoint = EngineClock::time_point;

inline constexpr TimePoint kNever = TimePoint::max();

}  // namespace ztcp
