// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/schedule.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace ztcp::perf::probe {
namespace {

class ProbeSchedule : public testing::TestWithParam<std::size_t> {};

TEST_P(ProbeSchedule, EachPairIsInOneRoundAndEachHostInOnePairOfARound) {
  const std::size_t hosts = GetParam();
  std::set<std::pair<std::size_t, std::size_t>> seen;
  for (const auto& round : rounds_of(hosts)) {
    std::set<std::size_t> busy;
    for (const Pair& pair : round) {
      EXPECT_LT(pair.a, pair.b);
      EXPECT_LT(pair.b, hosts);
      EXPECT_TRUE(busy.insert(pair.a).second);
      EXPECT_TRUE(busy.insert(pair.b).second);
      EXPECT_TRUE(seen.emplace(pair.a, pair.b).second);
    }
    EXPECT_EQ(busy.size(), hosts - hosts % 2);
  }
  EXPECT_EQ(seen.size(), hosts * (hosts - 1) / 2);
}

INSTANTIATE_TEST_SUITE_P(Hosts, ProbeSchedule, testing::Values(2, 3, 4, 5, 8, 17, 64, 101));

TEST(ProbeSchedule, HasSixtyThreeRoundsForSixtyFourHosts) {
  EXPECT_EQ(rounds_of(64).size(), 63U);
  EXPECT_EQ(rounds_of(2).size(), 1U);
  EXPECT_EQ(rounds_of(3).size(), 3U);
  EXPECT_TRUE(rounds_of(1).empty());
  EXPECT_TRUE(rounds_of(0).empty());
}

}  // namespace
}  // namespace ztcp::perf::probe
