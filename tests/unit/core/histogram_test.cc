// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/histogram.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(HistogramTest, EachLatencyLiesBelowTheUpperEndOfItsBucketAndAboveTheOneBefore) {
  for (std::uint64_t ns = 1; ns < 200'000'000'000; ns += ns / 16 + 1) {
    const std::size_t bucket = Histogram::bucket_of(ns);
    ASSERT_LT(bucket, Histogram::kBuckets);
    EXPECT_LT(ns, Histogram::upper_ns(bucket) + 1) << ns;
    if (bucket > 0) {
      EXPECT_GE(ns, Histogram::upper_ns(bucket - 1)) << ns;
    }
  }
}

TEST(HistogramTest, BucketsBelowOneSecondAreAtMostAQuarterWide) {
  for (std::size_t bucket = 1; bucket < Histogram::kFineOctaves * 4; ++bucket)
    EXPECT_LE(Histogram::upper_ns(bucket), Histogram::upper_ns(bucket - 1) * 5 / 4) << bucket;
}

TEST(HistogramTest, LatenciesBeyondTheRangeCountInTheLastBucket) {
  EXPECT_EQ(Histogram::bucket_of(UINT64_MAX), Histogram::kBuckets - 1);
}

TEST(HistogramTest, QuantilesFollowTheRank) {
  Histogram histogram;
  for (int i = 0; i < 99; ++i) histogram.add(10'000);
  histogram.add(5'000'000);
  EXPECT_EQ(total(histogram.counts()), 100U);
  const std::uint64_t median = quantile_ns(histogram.counts(), 0.5);
  EXPECT_GE(median, 10'000U);
  EXPECT_LE(median, 12'500U);
  EXPECT_EQ(quantile_ns(histogram.counts(), 0.99), median);
  EXPECT_GE(quantile_ns(histogram.counts(), 1), 5'000'000U);
}

TEST(HistogramTest, AnEmptyHistogramHasNoQuantile) {
  EXPECT_EQ(quantile_ns(Histogram::Counts{}, 0.5), 0U);
}

}  // namespace
}  // namespace ztcp
