// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/quantity.h"

#include <gtest/gtest.h>

namespace ztcp::tools {
namespace {

using namespace std::chrono_literals;

TEST(Quantity, BytesInPowersOf1024) {
  EXPECT_EQ(parse_bytes("8"), 8U);
  EXPECT_EQ(parse_bytes("64K"), 65536U);
  EXPECT_EQ(parse_bytes("64 KiB"), 65536U);
  EXPECT_EQ(parse_bytes("1.5m"), 1572864U);
  EXPECT_EQ(parse_bytes("1G"), 1ULL << 30U);
  for (const char* bad : {"", "G", "-1", "1T", "8x", "1 G x", "nan", "1e3"})
    EXPECT_EQ(parse_bytes(bad), std::nullopt) << bad;
}

TEST(Quantity, ProbabilityAsPercentOrFraction) {
  EXPECT_DOUBLE_EQ(*parse_probability("5%"), 0.05);
  EXPECT_DOUBLE_EQ(*parse_probability("0.001"), 0.001);
  EXPECT_EQ(parse_probability("1.5"), std::nullopt);
  EXPECT_EQ(parse_probability("101%"), std::nullopt);
}

TEST(Quantity, DurationNeedsItsUnit) {
  EXPECT_EQ(parse_duration("2ms"), Duration(2ms));
  EXPECT_EQ(parse_duration("250us"), Duration(250us));
  EXPECT_EQ(parse_duration("0.5s"), Duration(500ms));
  EXPECT_EQ(parse_duration("0"), Duration(0));
  EXPECT_EQ(parse_duration("2"), std::nullopt);
}

TEST(Quantity, BitRateInPowersOf1000) {
  EXPECT_EQ(parse_bit_rate("1Gbit"), 1'000'000'000U);
  EXPECT_EQ(parse_bit_rate("2.5Mbit"), 2'500'000U);
  EXPECT_EQ(parse_bit_rate("1GB"), std::nullopt);
}

TEST(Quantity, FormatsBytes) {
  EXPECT_EQ(format_bytes(64ULL << 20U), "64 MiB");
  EXPECT_EQ(format_bytes(1500), "1500 B");
}

}  // namespace
}  // namespace ztcp::tools
