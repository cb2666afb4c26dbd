// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/units.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp::stat {
namespace {

TEST(Units, Times) {
  EXPECT_EQ(time_text(0), "0 ns");
  EXPECT_EQ(time_text(12'000), "12 us");
  EXPECT_EQ(time_text(1'540'000), "1.5 ms");
  EXPECT_EQ(time_text(999'900'000), "1 s");
  EXPECT_EQ(time_text(3'240'000'000), "3.2 s");
  EXPECT_EQ(seconds_text(1), "1 s");
  EXPECT_EQ(seconds_text(0.25), "250 ms");
  EXPECT_EQ(seconds_text(240), "4 min");
  EXPECT_EQ(seconds_text(7200), "2 h");
  EXPECT_EQ(seconds_text(400'000), "4.6 days");
  EXPECT_EQ(seconds_text(-1), "0 ns");
}

TEST(Units, BytesAndRates) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1500), "1.5 kB");
  EXPECT_EQ(bytes_text(18'000'000'000'000'000'000U), "18 EB");
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(rate_text(10), "80 b/s");
  EXPECT_EQ(rate_text(1.54e9), "12.3 Gb/s");
  EXPECT_EQ(rate_text(12.5e9), "100 Gb/s");
}

TEST(Units, SharesAndCounts) {
  EXPECT_EQ(share_text(0), "0 %");
  EXPECT_EQ(share_text(0.0005), "0.05 %");
  EXPECT_EQ(share_text(0.12), "12 %");
  EXPECT_EQ(share_text(0.00001), "<0.01 %");
  EXPECT_EQ(count_text(1234), "1234");
  EXPECT_EQ(count_text(12'345), "12k");
  EXPECT_EQ(count_text(4'500'000), "4.5M");
}

TEST(Units, SparklineHasAColumnForEachValue) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 4, 8}, true), " ▄█");
  EXPECT_EQ(sparkline(std::vector<double>{0, 4, 8}, false), " =#");
  EXPECT_EQ(sparkline(std::vector<double>{0, 0}, true), "  ");
  EXPECT_EQ(sparkline({}, true), "");
}

}  // namespace
}  // namespace ztcp::stat
