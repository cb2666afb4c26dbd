// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// TCP timestamp values (RFC 7323 section 4): ticks of 1.024 us, fine enough for round trips inside
// a building, with a separate offset for each connection (section 7.1).
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace ztcp::tcp {

struct TimestampClock {
  static constexpr unsigned kTickShift = 10;

  std::uint32_t offset = 0;

  std::uint32_t at(TimePoint now) const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(now.time_since_epoch().count()) >>
                                      kTickShift) +
           offset;
  }
  // The time since `echo` was sent, at most one tick too long.
  Duration since(TimePoint now, std::uint32_t echo) const {
    return Duration(std::int64_t{static_cast<std::int32_t>(at(now) - echo)} << kTickShift);
  }
};

// Modulo 2^32 like sequence numbers (RFC 7323 section 5.2).
constexpr bool timestamp_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace ztcp::tcp
