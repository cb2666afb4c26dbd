// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/spread.h"

#include <cstddef>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::perf {
namespace {

std::vector<float> down_from(int count) {
  std::vector<float> samples;
  for (int i = count; i >= 1; --i) samples.push_back(static_cast<float>(i));
  return samples;
}

TEST(Spread, PercentilesAreNearestRanks) {
  std::vector<float> samples = down_from(100);
  const Spread spread = summarise(samples);
  EXPECT_EQ(spread.samples, 100U);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.p50, 50);
  EXPECT_EQ(spread.p99, 99);
  EXPECT_EQ(spread.max, 100);
  EXPECT_DOUBLE_EQ(spread.mean, 50.5);
  std::vector<float> one = {3};
  EXPECT_EQ(summarise(one).p99, 3);
  EXPECT_EQ(summarise(one).variation, 0);
}

TEST(Spread, The999thPermilleNeedsAThousandSamples) {
  std::vector<float> few = down_from(999);
  EXPECT_FALSE(summarise(few).p999);
  std::vector<float> enough = down_from(1000);
  EXPECT_EQ(summarise(enough).p999, 999);
  std::vector<float> more = down_from(2000);
  EXPECT_EQ(summarise(more).p999, 1998);
}

TEST(Spread, VariationIsTheSamplesStandardDeviation) {
  std::vector<float> samples = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_NEAR(summarise(samples).variation, 2.13809 / 5, 1e-5);
  std::vector<float> equal = {7, 7, 7};
  EXPECT_EQ(summarise(equal).variation, 0);
}

TEST(Samples, ALongRunIsThinnedEvenlyAndKeepsTheExtremes) {
  Samples samples(100);
  std::vector<float> us(10'000);
  for (std::size_t i = 0; i < us.size(); ++i) us[i] = static_cast<float>(10 + i % 100);
  us[7777] = 4000;
  us[8887] = 1;
  const std::span<const float> all(us);
  for (std::size_t i = 0; i < all.size(); i += 250) samples.add(all.subspan(i, 250));
  std::vector<float> kept = samples.take();
  EXPECT_GE(kept.size(), 50U);
  EXPECT_LE(kept.size(), 102U);
  const Spread spread = summarise(kept);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 4000);
}

TEST(Samples, AllSamplesOfAShortRunAreKept) {
  Samples samples(100);
  samples.add(std::vector<float>{3, 1, 2});
  EXPECT_EQ(samples.take(), (std::vector<float>{3, 1, 2}));
}

TEST(Spread, OneStallShowsInTheMaximumAndNotInTheMedian) {
  std::vector<float> samples(1500, 20);
  samples[700] = 4000;
  const Spread spread = summarise(samples);
  EXPECT_EQ(spread.p50, 20);
  EXPECT_EQ(*spread.p999, 20) << "one of 1500 is less than a thousandth";
  EXPECT_EQ(spread.max, 4000);
  EXPECT_GT(spread.variation, 1);
}

}  // namespace
}  // namespace ztcp::perf
