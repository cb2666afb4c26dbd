// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/mlx5/port_prefixes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::link::mlx5 {
namespace {

constexpr std::size_t kPorts = 1U << 16U;

bool has(const PortPrefix& prefix, std::size_t port) { return (port & prefix.mask) == prefix.port; }

TEST(PortPrefixes, TheDefaultRangeTakesSix) {
  EXPECT_EQ(prefixes_of(61000, 65535), (std::vector<PortPrefix>{{61000, 0xfff8},
                                                                {61008, 0xfff0},
                                                                {61024, 0xffe0},
                                                                {61056, 0xff80},
                                                                {61184, 0xff00},
                                                                {61440, 0xf000}}));
}

TEST(PortPrefixes, OnePortIsComparedWhole) {
  EXPECT_EQ(prefixes_of(7471, 7471), (std::vector<PortPrefix>{{7471, 0xffff}}));
}

TEST(PortPrefixes, AllPortsNeedNoComparison) {
  EXPECT_EQ(prefixes_of(0, 65535), (std::vector<PortPrefix>{{0, 0}}));
}

// Any range: exactly its ports, each by one prefix.
TEST(PortPrefixes, CoverARangeExactlyAndWithoutOverlap) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint32_t> any(0, kPorts - 1);
  for (int round = 0; round < 200; ++round) {
    std::uint32_t first = any(random);
    std::uint32_t last = any(random);
    if (first > last) std::swap(first, last);
    if (round % 4 == 0) last = kPorts - 1;
    if (round % 4 == 1)
      last = std::min<std::uint32_t>(first + static_cast<std::uint32_t>(round), kPorts - 1);
    const auto prefixes =
        prefixes_of(static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last));
    EXPECT_LE(prefixes.size(), 30U);
    std::vector<int> covered(kPorts);
    for (const PortPrefix& prefix : prefixes) {
      EXPECT_EQ(prefix.port & ~prefix.mask, 0) << "bits that the mask hides";
      for (std::size_t port = 0; port < kPorts; ++port) covered[port] += has(prefix, port);
    }
    for (std::size_t port = 0; port < kPorts; ++port)
      ASSERT_EQ(covered[port], port >= first && port <= last)
          << first << "-" << last << ", port " << port;
  }
}

}  // namespace
}  // namespace ztcp::link::mlx5
