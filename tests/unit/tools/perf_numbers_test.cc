// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
// Test data, time budget and the ping's distribution.
#include <vector>

#include <gtest/gtest.h>

#include "tools/ztcp_perf/budget.h"
#include "tools/ztcp_perf/pattern.h"
#include "tools/ztcp_perf/ping_times.h"

namespace ztcp::perf {
namespace {

std::vector<float> sums(int ranks, std::uint32_t iteration, std::size_t count) {
  std::vector<float> total(count, 0);
  std::vector<float> one(count);
  for (int rank = 0; rank < ranks; ++rank) {
    fill_summands(one, rank, iteration);
    for (std::size_t i = 0; i < count; ++i) total[i] += one[i];
  }
  return total;
}

TEST(Pattern, AcceptsTheRightSumsOnly) {
  std::vector<float> good = sums(5, 9, 5000);
  EXPECT_EQ(count_wrong_sums(good, 5, 9), 0U);
  EXPECT_GT(count_wrong_sums(good, 5, 8), 4500U) << "an older iteration";
  EXPECT_GT(count_wrong_sums(good, 4, 9), 4500U) << "a rank too many";
  good[4321] += 1;
  EXPECT_EQ(count_wrong_sums(good, 5, 9), 1U);
  poison(std::as_writable_bytes(std::span(good)));
  EXPECT_EQ(count_wrong_sums(good, 5, 9), 5000U) << "never written";
}

TEST(Pattern, AMissingSummandShowsInEveryElement) {
  EXPECT_EQ(count_wrong_sums(sums(4, 2, 3000), 5, 2), 3000U);
}

TEST(Pattern, BlocksDifferByEverything) {
  std::vector<std::uint32_t> block(5000);
  fill_block(block, 1, 2, 7);
  EXPECT_EQ(count_wrong_block(block, 1, 2, 7), 0U);
  for (const auto& [from, to, iteration] :
       std::vector<std::tuple<int, int, std::uint32_t>>{{2, 1, 7}, {1, 3, 7}, {0, 2, 7}, {1, 2, 8}})
    EXPECT_GT(count_wrong_block(block, from, to, iteration), 4990U);
  std::swap(block[10], block[11]);
  EXPECT_EQ(count_wrong_block(block, 1, 2, 7), 2U) << "order counts";
  poison(std::as_writable_bytes(std::span(block)));
  EXPECT_EQ(count_wrong_block(block, 1, 2, 7), 5000U);
}

TEST(Budget, WithoutALimitGivesWhatIsWanted) {
  const Budget budget(0);
  EXPECT_EQ(budget.iterations(20, 1000, 0, 0, 1), 20);
  EXPECT_TRUE(budget.admits(1U << 30U, 1e9, 1));
}

TEST(Budget, SharesWhatIsLeftAmongTheSizesLeft) {
  const Budget budget(60);
  EXPECT_EQ(budget.iterations(20, 0.001, 0, 10, 5), 20) << "10 s for 20 ms";
  EXPECT_EQ(budget.iterations(20, 1, 0, 10, 5), 10);
  EXPECT_EQ(budget.iterations(20, 1, 4, 10, 5), 6) << "verification needs its part";
  EXPECT_EQ(budget.iterations(20, 100, 0, 10, 5), 1) << "never none";
}

TEST(Budget, StopsBeforeASizeThatCannotFinish) {
  Budget budget(60);
  EXPECT_TRUE(budget.admits(1 << 20, 0, 1)) << "the first always runs";
  budget.learn(1 << 20, 1.0, 0.5);
  EXPECT_TRUE(budget.admits(8 << 20, 20, 1)) << "8 s each for warm-up, timed, checked; 4 to verify";
  EXPECT_FALSE(budget.admits(8 << 20, 40, 1));
}

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
