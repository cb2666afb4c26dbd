// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The age of a connection's oldest message in flight, from counts that are read twice a second: no
// message needs a clock for it. The age is too small by at most the time between two looks. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/clock.h"

namespace ztcp::verbs {

class MessageAges {
 public:
  // `begun`, `done`: messages so far, which end in their order. Returns the first look at which the
  // oldest one in flight had begun; zero: none is in flight.
  TimePoint look(TimePoint now, std::uint64_t begun, std::uint64_t done) {
    std::size_t ended = 0;
    while (ended < count_ && looks_[ended].begun <= done) ++ended;
    count_ -= ended;
    for (std::size_t i = 0; i < count_; ++i) looks_[i] = looks_[i + ended];
    if (begun <= done) return {};
    if (count_ == 0 || looks_[count_ - 1].begun < begun) {
      // Without room the newest ones are taken together.
      if (count_ == kLooks) --count_;
      looks_[count_++] = {now, begun};
    }
    return looks_[0].at;
  }

 private:
  static constexpr std::size_t kLooks = 16;
  struct Look {
    TimePoint at;
    std::uint64_t begun = 0;
  };
  std::array<Look, kLooks> looks_{};  // The oldest first.
  std::size_t count_ = 0;
};

}  // namespace ztcp::verbs
