// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The age of a connection's oldest message in flight, from counts that are read twice a second: no
// message needs a clock for it. The age is too small by at most the time between two readings.
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/clock.h"

namespace ztcp::verbs {

class MessageAges {
 public:
  // `begun`, `done`: messages so far, which end in their order. Returns the first reading at
  // which the oldest one in flight had begun; zero: none is in flight.
  TimePoint update(TimePoint now, std::uint64_t begun, std::uint64_t done) {
    std::size_t ended = 0;
    while (ended < count_ && readings_[ended].begun <= done) ++ended;
    count_ -= ended;
    for (std::size_t i = 0; i < count_; ++i) readings_[i] = readings_[i + ended];
    if (begun <= done) return {};
    if (count_ == 0 || readings_[count_ - 1].begun < begun) {
      // Without room the newest ones are taken together.
      if (count_ == kReadings) --count_;
      readings_[count_++] = {now, begun};
    }
    return readings_[0].at;
  }

 private:
  static constexpr std::size_t kReadings = 16;
  struct Reading {
    TimePoint at;
    std::uint64_t begun = 0;
  };
  std::array<Reading, kReadings> readings_{};  // The oldest first.
  std::size_t count_ = 0;
};

}  // namespace ztcp::verbs
