// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/dctcp.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using test::kMss;

class DctcpTest : public testing::Test {
 protected:
  // One window of data, acknowledged by one ACK.
  void round(std::uint32_t bytes, std::uint32_t ce_bytes) {
    una = una + bytes;
    control.on_ack(TimePoint{},
                   {.ack = una,
                    .snd_nxt = una + bytes,
                    .acked_bytes = bytes,
                    .ce_bytes = ce_bytes,
                    .window_limited = true},
                   window);
  }
  Dctcp control{SeqNum(1)};
  SeqNum una{1};
  CongestionControl::Window window{
      .mss_bytes = kMss, .cwnd_bytes = 100 * kMss, .ssthresh_bytes = 100 * kMss};
};

// RFC 8257 section 3.3.
TEST_F(DctcpTest, AlphaFollowsTheShareOfMarkedBytes) {
  EXPECT_EQ(control.alpha(), 1);
  for (int i = 0; i < 100; ++i) round(100'000, 25'000);
  EXPECT_NEAR(control.alpha(), 0.25, 0.01);
  for (int i = 0; i < 200; ++i) round(100'000, 0);
  EXPECT_LT(control.alpha(), 0.001);
}

TEST_F(DctcpTest, MarksTakeHalfTheirShareOfTheWindow) {
  EXPECT_EQ(control.on_mark(window), 50 * kMss);
  for (int i = 0; i < 200; ++i) round(100'000, 20'000);
  window.cwnd_bytes = 100 * kMss;
  EXPECT_NEAR(control.on_mark(window), 90 * kMss, kMss);
}

TEST_F(DctcpTest, ALossTakesHalfTheWindow) { EXPECT_EQ(control.on_loss(window), 50 * kMss); }

TEST_F(DctcpTest, TheWindowGrowsByASegmentPerRoundTripForUnmarkedBytes) {
  round(100 * kMss, 0);
  EXPECT_EQ(window.cwnd_bytes, 101 * kMss);
  round(101 * kMss, 101 * kMss);
  EXPECT_EQ(window.cwnd_bytes, 101 * kMss);
}

// RFC 6928: 14600 bytes, or two segments.
TEST_F(DctcpTest, TheInitialWindowOfLargeSegmentsIsTwoOfThem) {
  window.cwnd_bytes = 10 * kMss;
  control.begin(window);
  EXPECT_EQ(window.cwnd_bytes, 10 * kMss);
  window.mss_bytes = 8948;
  window.cwnd_bytes = 10 * 8948;
  control.begin(window);
  EXPECT_EQ(window.cwnd_bytes, 2U * 8948);
}

TEST_F(DctcpTest, TheWindowFallsBelowASegmentAndGrowsFromThere) {
  window.mss_bytes = 8948;
  window.cwnd_bytes = 8948;
  for (int i = 0; i < 20; ++i) window.cwnd_bytes = control.on_mark(window);
  EXPECT_EQ(window.cwnd_bytes, 8948U / 8);
  window.ssthresh_bytes = window.cwnd_bytes;
  const std::uint32_t before = window.cwnd_bytes;
  round(before, 0);
  EXPECT_NEAR(window.cwnd_bytes, 1.5 * before, 2);
  round(window.cwnd_bytes, 0);
  EXPECT_NEAR(window.cwnd_bytes, 2 * before, 2);
  window.cwnd_bytes = 4 * 8948;
  round(4 * 8948, 0);
  EXPECT_NEAR(window.cwnd_bytes, 4.5 * 8948, 10);
}

TEST_F(DctcpTest, IdleTimeTakesBackTheGrowthSinceTheLastReduction) {
  window.ssthresh_bytes = window.cwnd_bytes = control.on_mark(window);
  for (int i = 0; i < 20; ++i) round(window.cwnd_bytes, 0);
  const std::uint32_t grown = window.cwnd_bytes;
  control.on_restart(TimePoint{}, window);
  EXPECT_EQ(window.cwnd_bytes, grown) << "no longer than a round trip";
  control.on_restart(TimePoint{} + std::chrono::milliseconds(1), window);
  EXPECT_EQ(window.cwnd_bytes, 50 * kMss);
}

}  // namespace
}  // namespace ztcp::tcp
