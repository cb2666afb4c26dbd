// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_switch/mac_table.h"

#include <gtest/gtest.h>

namespace ztcp::fabric {
namespace {

using namespace std::chrono_literals;

MacAddress mac(std::uint32_t n) {
  return {{0x02, 0, static_cast<std::uint8_t>(n >> 24U), static_cast<std::uint8_t>(n >> 16U),
           static_cast<std::uint8_t>(n >> 8U), static_cast<std::uint8_t>(n)}};
}

TEST(MacTable, FindsWhatItLearnt) {
  MacTable table(300s);
  const TimePoint now{};
  EXPECT_EQ(table.find(now, mac(1)), std::nullopt);
  EXPECT_FALSE(table.learn(now, mac(1), 3));
  EXPECT_EQ(table.find(now, mac(1)), 3U);
  EXPECT_EQ(table.size(now), 1U);
}

TEST(MacTable, ReportsAndFollowsMoves) {
  MacTable table(300s);
  const TimePoint now{};
  table.learn(now, mac(1), 3);
  EXPECT_FALSE(table.learn(now + 1s, mac(1), 3));
  EXPECT_TRUE(table.learn(now + 2s, mac(1), 4));
  EXPECT_EQ(table.find(now + 2s, mac(1)), 4U);
}

TEST(MacTable, ForgetsSilentAddressesAndKeepsActiveOnes) {
  MacTable table(300s);
  TimePoint now{};
  table.learn(now, mac(1), 1);
  table.learn(now, mac(2), 2);
  now += 200s;
  table.learn(now, mac(2), 2);
  now += 101s;
  EXPECT_EQ(table.find(now, mac(1)), std::nullopt);
  EXPECT_EQ(table.find(now, mac(2)), 2U);
  EXPECT_FALSE(table.learn(now, mac(1), 7)) << "coming back after ageing is not a move";
}

TEST(MacTable, AFloodOfAddressesEvictsTheOldestFirst) {
  MacTable table(300s);
  TimePoint now{};
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    now += 1us;
    table.learn(now, mac(i), i % 4);
  }
  EXPECT_EQ(table.find(now, mac(99'999)), 3U);
  EXPECT_LE(table.size(now), 4096U);
  EXPECT_GT(table.size(now), 4000U) << "the hash must spread sequential addresses";
}

}  // namespace
}  // namespace ztcp::fabric
