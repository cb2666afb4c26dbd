// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The segment sizes that tests count in.
#pragma once

#include <cstdint>

namespace ztcp::tcp::test {

inline constexpr std::uint32_t kMss = 1448;       // What an MTU of 1500 leaves beside timestamps.
inline constexpr std::uint32_t kRoundMss = 1000;  // Where no header says it.

}  // namespace ztcp::tcp::test
