// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Segment sizes used in tests.
#pragma once

#include <cstdint>

namespace ztcp::tcp::test {

inline constexpr std::uint32_t kMss = 1448;       // Left of an MTU of 1500 beside timestamps.
inline constexpr std::uint32_t kRoundMss = 1000;  // For tests without headers.

}  // namespace ztcp::tcp::test
