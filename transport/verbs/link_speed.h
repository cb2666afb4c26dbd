// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How fast the link of a port is.
#pragma once

#include <cstdint>

namespace ztcp::verbs {

// The kernel's numbers for the negotiated speed of the link (InfiniBand's; RoCE's are alike).
constexpr std::uint32_t lane_mbps(std::uint32_t speed) {
  switch (speed) {
    case 1:
      return 2500;
    case 2:
      return 5000;
    case 4:
    case 8:
      return 10000;
    case 16:
      return 14000;
    case 32:
      return 25000;
    case 64:
      return 50000;
    case 128:
      return 100000;
    case 256:
      return 200000;
    default:
      return 0;
  }
}

constexpr std::uint32_t lanes(std::uint8_t width) {
  switch (width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

// 0: of a number that nobody knows.
constexpr std::uint32_t link_mbps(std::uint32_t speed, std::uint8_t width) {
  return lane_mbps(speed) * lanes(width);
}

}  // namespace ztcp::verbs
