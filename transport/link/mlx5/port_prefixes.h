// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A range of ports as prefixes: the NIC compares ports under a mask, and knows no ranges.
#pragma once

#include <cstdint>
#include <vector>

namespace ztcp::link::mlx5 {

struct PortPrefix {
  std::uint16_t port = 0;
  std::uint16_t mask = UINT16_MAX;
  friend bool operator==(const PortPrefix&, const PortPrefix&) = default;
};

// As few as possible, in ascending order, none of which overlap.
inline std::vector<PortPrefix> prefixes_of(std::uint16_t first, std::uint16_t last) {
  std::vector<PortPrefix> out;
  for (std::uint32_t at = first; at <= last;) {
    std::uint32_t size = 1;
    // The largest block that begins here and does not go beyond the last port.
    while ((at & size) == 0 && at + 2 * size - 1 <= last) size *= 2;
    out.push_back({static_cast<std::uint16_t>(at), static_cast<std::uint16_t>(~(size - 1))});
    at += size;
  }
  return out;
}

}  // namespace ztcp::link::mlx5
