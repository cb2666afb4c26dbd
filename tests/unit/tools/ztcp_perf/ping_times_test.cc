// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/ping_times.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp::perf {
namespace {

TEST(PingTimes, PercentilesAreNearestRanks) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const PingTimes times = summarise(samples);
  EXPECT_EQ(times.min, 1);
  EXPECT_EQ(times.p50, 50);
  EXPECT_EQ(times.p99, 99);
  EXPECT_EQ(times.max, 100);
  EXPECT_DOUBLE_EQ(times.mean, 50.5);
  std::vector<double> one = {3};
  EXPECT_EQ(summarise(one).p99, 3);
}

}  // namespace
}  // namespace ztcp::perf
