// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_sizes.h"

#include <gtest/gtest.h>

namespace ztcp::plugin {
namespace {

CollnetRows rows_at(std::uint32_t speed_mbps, reduce::Wire wire = reduce::Wire::kBfloat16) {
  return collnet_rows(TransportKind::kSockets, wire, speed_mbps);
}

bool is_offered(std::uint32_t speed_mbps, std::size_t kib) {
  return have_size(rows_at(speed_mbps), 2, 2, kib << 10U);
}

TEST(CollnetSizes, FewerSizesHoldOfFasterNics) {
  for (const std::uint32_t speed : {1000, 10'000, 25'000, 50'000, 100'000}) {
    EXPECT_FALSE(is_offered(speed, 63)) << speed;
    EXPECT_TRUE(is_offered(speed, 64)) << speed;
    EXPECT_TRUE(is_offered(speed, 128)) << speed;
    EXPECT_FALSE(is_offered(speed, 256)) << speed;
    EXPECT_FALSE(is_offered(speed, 512)) << speed;
    EXPECT_EQ(is_offered(speed, 1 << 10U), speed <= 25'000) << speed;
    EXPECT_EQ(is_offered(speed, 4 << 10U), speed <= 25'000) << speed;
    EXPECT_EQ(is_offered(speed, 8 << 10U), speed <= 50'000) << speed;
    EXPECT_EQ(is_offered(speed, 1024 << 10U), speed <= 50'000) << speed;
  }
  EXPECT_EQ(rows_at(100'001), 0U);
  EXPECT_EQ(rows_at(400'000), 0U);
  EXPECT_NE(rows_at(25'000), rows_at(25'001));
  EXPECT_EQ(rows_at(25'001), rows_at(50'000));
}

TEST(CollnetSizes, Fp8HasRowsOfItsOwn) {
  const auto is_offered = [](std::uint32_t speed_mbps, std::size_t mib) {
    return have_size(rows_at(speed_mbps, reduce::Wire::kFloat8), 2, 2, mib << 20U);
  };
  EXPECT_FALSE(is_offered(25'000, 1));
  EXPECT_TRUE(is_offered(25'000, 2));
  EXPECT_FALSE(is_offered(50'000, 4));
  EXPECT_TRUE(is_offered(50'000, 8));
  EXPECT_EQ(rows_at(50'001, reduce::Wire::kFloat8), 0U);
  EXPECT_EQ(rows_at(25'000) & rows_at(25'000, reduce::Wire::kFloat8), 0U);
}

TEST(CollnetSizes, OtherNetworksAndFormsHaveNone) {
  EXPECT_EQ(collnet_rows(std::nullopt, reduce::Wire::kBfloat16, 10'000), 0U);
  EXPECT_EQ(collnet_rows(TransportKind::kUstack, reduce::Wire::kBfloat16, 10'000), 0U);
  EXPECT_EQ(collnet_rows(TransportKind::kSockets, reduce::Wire::kAsIs, 10'000), 0U);
}

TEST(CollnetSizes, TheGreatestSpeedIsThatOfAllRows) {
  EXPECT_EQ(most_collnet_speed_mbps(TransportKind::kSockets, reduce::Wire::kBfloat16), 100'000U);
  EXPECT_EQ(most_collnet_speed_mbps(TransportKind::kSockets, reduce::Wire::kAsIs), 0U);
}

TEST(CollnetSizes, TheTextJoinsRowsThatOverlap) {
  EXPECT_EQ(sizes_text(rows_at(10'000)),
            "64 KiB to 128 KiB, 1 MiB and more between 2 hosts with a rank each");
  EXPECT_EQ(sizes_text(rows_at(50'000)),
            "64 KiB to 128 KiB, 8 MiB and more between 2 hosts with a rank each");
  EXPECT_EQ(sizes_text(rows_at(100'000)), "64 KiB to 128 KiB between 2 hosts with a rank each");
}

}  // namespace
}  // namespace ztcp::plugin
