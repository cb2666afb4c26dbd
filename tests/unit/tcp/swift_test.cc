// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/swift.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;
using test::kRoundMss;

class SwiftTest : public testing::Test {
 protected:
  SwiftTest() {
    window.mss_bytes = kRoundMss;
    window.cwnd_bytes = 100 * kRoundMss;
  }
  void ack(Duration rtt, std::uint32_t segments = 100, bool limited = true) {
    swift.on_ack(now,
                 {.ack = SeqNum(0),
                  .snd_nxt = SeqNum(0),
                  .acked_bytes = segments * kRoundMss,
                  .window_limited = limited,
                  .rtt_sample = rtt,
                  .srtt = rtt,
                  .min_rtt = 100us},
                 window);
  }
  Swift swift{SeqNum(0)};
  CongestionControl::Window window;
  TimePoint now{1h};
};

TEST_F(SwiftTest, TargetGrowsWithThePathAndForSmallWindows) {
  EXPECT_EQ(Swift::target(0us, 64), Swift::kBase);
  EXPECT_EQ(Swift::target(0us, 1000), Swift::kBase);
  EXPECT_EQ(Swift::target(0us, 1), Swift::kBase + Swift::kMostFlowScaling);
  EXPECT_EQ(Swift::target(0us, 0.1), Swift::kBase + Swift::kMostFlowScaling);
  EXPECT_EQ(Swift::target(800us, 64), Swift::kBase + 100us);
  EXPECT_GT(Swift::target(0us, 4), Swift::target(0us, 16));
}

TEST_F(SwiftTest, DoublesBelowTheTargetAtFirst) {
  ack(110us);
  EXPECT_EQ(window.cwnd_bytes, 200 * kRoundMss);
}

TEST_F(SwiftTest, GrowsByASegmentARoundTripLater) {
  window.ssthresh_bytes = window.cwnd_bytes;
  ack(110us);
  EXPECT_EQ(window.cwnd_bytes, 101 * kRoundMss);
}

TEST_F(SwiftTest, DoesNotGrowWhileTheWindowIsNotTheLimit) {
  ack(110us, 100, /*limited=*/false);
  EXPECT_EQ(window.cwnd_bytes, 100 * kRoundMss);
}

// 100 us beyond the shortest; the target is 37.5 us: 62.5 of 200 us too long.
TEST_F(SwiftTest, ShrinksByTheExcess) {
  ack(200us);
  EXPECT_NEAR(window.cwnd_bytes, (1 - 0.8 * 62.5 / 200) * 100 * kRoundMss, kRoundMss);
  EXPECT_FALSE(window.in_slow_start());
}

TEST_F(SwiftTest, ShrinksOnceARoundTrip) {
  ack(200us);
  const std::uint32_t once = window.cwnd_bytes;
  now += 100us;
  ack(200us);
  EXPECT_EQ(window.cwnd_bytes, once);
  now += 101us;
  ack(200us);
  EXPECT_LT(window.cwnd_bytes, once);
}

TEST_F(SwiftTest, ShrinksByAtMostHalfAndToASegment) {
  ack(100ms);
  EXPECT_EQ(window.cwnd_bytes, 50 * kRoundMss);
  for (int i = 0; i < 20; ++i) {
    now += 1s;
    ack(100ms);
  }
  EXPECT_EQ(window.cwnd_bytes, kRoundMss);
}

TEST_F(SwiftTest, ALossHalves) { EXPECT_EQ(swift.on_loss(window), 50 * kRoundMss); }

}  // namespace
}  // namespace ztcp::tcp
