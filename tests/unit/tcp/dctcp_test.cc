// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/dctcp.h"

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

}  // namespace
}  // namespace ztcp::tcp
