// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/chunk_map.h"

#include <bitset>
#include <random>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

TEST(UnitSize, CoversAnyMessageWith1024UnitsAtMost) {
  for (std::uint64_t total = 1; total <= kMaxMessageBytes; total += 1 + total / 7) {
    const UnitSize unit(total);
    ASSERT_LE(unit.count(total), 1024U) << total;
    ASSERT_GE(unit.bytes(), 4096U);
    ASSERT_GE(unit.offset(unit.count(total)), total);
    ASSERT_LT(unit.offset(unit.count(total) - 1), total);
    // No larger than needed.
    if (unit.bytes() > 4096) {
      ASSERT_GT(total, 1024 * unit.bytes() / 2) << total;
    }
  }
  EXPECT_EQ(UnitSize(0).count(0), 0U);
}

TEST(ChunkMap, AgreesWithABitset) {
  std::mt19937_64 rng(1);
  ChunkMap map{};
  std::bitset<1024> model;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t first = rng() % 1025;
    const std::uint64_t last = std::min<std::uint64_t>(1024, first + rng() % 200);
    std::uint64_t set = 0;
    for (std::uint64_t u = first; u < last; ++u) set += model.test(u) ? 1 : 0;
    ASSERT_EQ(map.count(first, last), set);
    if (rng() % 4 == 0) {
      ASSERT_EQ(map.set(first, last), last - first - set);
      for (std::uint64_t u = first; u < last; ++u) model.set(u);
    }
    const std::uint64_t probe = rng() % 1024;
    ASSERT_EQ(map.test(probe), model.test(probe));
    if (rng() % 300 == 0) {
      map.clear_first(ChunkMap::kMaxUnits);
      model.reset();
    }
  }
}

}  // namespace
}  // namespace ztcp::msg
