// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Estimates the bytes queued in a NIC whose driver does not report them: the bytes handed over,
// less those that a line of its speed can have carried since. Never too high, since preambles, gaps
// and pauses, which are not counted, only make the line slower.
//
// A value: time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace ztcp::link {

class LineModel {
 public:
  // 0: unknown; then no bytes are assumed to wait.
  void set_speed(std::uint32_t mbps) { mbps_ = mbps; }
  std::uint32_t speed_mbps() const { return mbps_; }

  void add(std::uint64_t bytes) {
    if (mbps_ != 0) backlog_ += bytes * kPerByte;
  }
  std::uint64_t queued_bytes(TimePoint now) {
    const Duration passed = std::clamp(now - seen_, Duration::zero(), kLongest);
    seen_ = std::max(seen_, now);
    backlog_ -= std::min(backlog_, static_cast<std::uint64_t>(passed.count()) * mbps_);
    if (mbps_ == 0) backlog_ = 0;
    return backlog_ / kPerByte;
  }

 private:
  // 1 Mb/s is 1/8000 byte per nanosecond: counted in such units, so that nothing is rounded away.
  static constexpr std::uint64_t kPerByte = 8000;
  static constexpr Duration kLongest = std::chrono::seconds(10);  // At 3.2 Tb/s: no overflow.

  std::uint32_t mbps_ = 0;
  std::uint64_t backlog_ = 0;
  TimePoint seen_{};
};

}  // namespace ztcp::link
