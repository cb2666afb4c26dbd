// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/bbr_filters.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;
using test::kRoundMss;

TEST(MaxOfTwo, ForgetsAfterTwoSpans) {
  MaxOfTwo<double> filter;
  filter.add(10);
  filter.add(7);
  EXPECT_EQ(filter.get(), 10);
  filter.advance();
  filter.add(8);
  EXPECT_EQ(filter.get(), 10);
  filter.advance();
  EXPECT_EQ(filter.get(), 8);
}

TEST(MinRttFilter, KeepsTheSmallestForTenSeconds) {
  MinRttFilter filter;
  TimePoint now{1h};
  EXPECT_FALSE(filter.is_known());
  filter.on_sample(now, 2ms);
  filter.on_sample(now, 1ms);
  filter.on_sample(now, 3ms);
  EXPECT_EQ(filter.get(), 1ms);
  now += 6s;
  EXPECT_TRUE(filter.on_sample(now, 2ms)) << "no smaller one for 5 s";
  EXPECT_EQ(filter.get(), 1ms);
  now += 5s;
  filter.on_sample(now, 2ms);
  EXPECT_EQ(filter.get(), 2ms);
}

TEST(MinRttFilter, ExpiresOnlyAfterAProbesRefresh) {
  MinRttFilter filter;
  TimePoint now{1h};
  filter.on_sample(now, 1ms);
  now += 4s;
  filter.refresh(now);
  now += 2s;
  EXPECT_FALSE(filter.on_sample(now, 2ms));
  EXPECT_FALSE(filter.on_sample(now, Duration::zero())) << "no sample";
}

class LossFloorTest : public testing::Test {
 protected:
  void batch(std::uint32_t lost_segments, bool queued = false) {
    floor.on_round((256 - lost_segments) * kRoundMss, lost_segments * kRoundMss, queued, kRoundMss);
  }
  bool exceeds(std::uint32_t lost, std::uint32_t sent, bool queued = false,
               std::uint32_t exposed = 0) const {
    return floor.is_exceeded(lost * kRoundMss, sent * kRoundMss,
                             std::max(sent, exposed) * kRoundMss, queued, kRoundMss);
  }
  LossFloor floor;
};

TEST_F(LossFloorTest, BoundIsTwoPercent) {
  batch(0);
  batch(0);
  EXPECT_FALSE(exceeds(2, 100));
  EXPECT_TRUE(exceeds(3, 100));
}

TEST_F(LossFloorTest, UnknownFloorNeedsAQueueForTheSmallBound) {
  EXPECT_FALSE(exceeds(10, 100));
  EXPECT_TRUE(exceeds(10, 100, /*queued=*/true));
  EXPECT_TRUE(exceeds(21, 100));
}

TEST_F(LossFloorTest, LossWithoutAQueueRaisesTheBound) {
  batch(13);
  batch(13);
  EXPECT_NEAR(floor.share(), 0.05, 0.002);
  EXPECT_FALSE(exceeds(8, 100));
  EXPECT_TRUE(exceeds(20, 100));
}

// After a probe, the losses are of more than was in flight when their ACK was sent for.
TEST_F(LossFloorTest, FloorCountsOnWhatAProbeExposed) {
  EXPECT_TRUE(exceeds(50, 400, /*queued=*/true, 600))
      << "without a floor the bound is of what was sent";
  batch(13);
  batch(13);
  EXPECT_TRUE(exceeds(50, 400, /*queued=*/false));
  EXPECT_FALSE(exceeds(50, 400, /*queued=*/false, 600));
  EXPECT_TRUE(exceeds(60, 400, /*queued=*/false, 600));
}

TEST_F(LossFloorTest, LossWithAQueueDoesNot) {
  batch(13);
  batch(13, /*queued=*/true);
  EXPECT_EQ(floor.share(), 0);
  EXPECT_TRUE(exceeds(8, 100));
}

TEST(AckBursts, TellBytesAboveTheBandwidth) {
  AckBursts bursts;
  TimePoint now{1h};
  // 1 MB/s, acknowledged every 10 ms at once.
  for (int i = 0; i < 10; ++i, now += 10ms) bursts.on_ack(now, 10'000, 1e6, 100'000);
  EXPECT_NEAR(bursts.bytes(), 10'000, 1000);
  for (int round = 0; round < 10; ++round) {
    bursts.on_round();
    for (int i = 0; i < 10; ++i, now += 1ms) bursts.on_ack(now, 1000, 1e6, 100'000);
  }
  EXPECT_LE(bursts.bytes(), 2000U) << "forgotten after ten rounds";
}

}  // namespace
}  // namespace ztcp::tcp
