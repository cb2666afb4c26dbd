// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/pattern.h"

#include <vector>

#include <gtest/gtest.h>

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

TEST(Pattern, BlocksDependOnSenderReceiverAndIteration) {
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

}  // namespace
}  // namespace ztcp::perf
