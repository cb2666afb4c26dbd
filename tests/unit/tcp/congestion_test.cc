// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/congestion.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"
#include "transport/tcp/cubic.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;
using test::kRoundMss;

class CongestionTest : public testing::Test {
 protected:
  CongestionTest() { congestion.begin(make_congestion_control<Cubic>, kRoundMss, 10, SeqNum(0)); }
  void ack(std::uint32_t bytes, bool limited = true, Duration rtt = {}) {
    number += bytes;
    CongestionControl::Ack ack{.ack = SeqNum(number),
                               .snd_nxt = SeqNum(number + congestion.window_bytes()),
                               .acked_bytes = bytes,
                               .window_limited = limited,
                               .rtt_sample = rtt,
                               .srtt = 1ms};
    congestion.on_ack(now, ack);
  }
  Congestion congestion;
  TimePoint now{1h};
  std::uint32_t number = 0;
};

// RFC 6928, then RFC 5681 section 3.1: one segment more for each acknowledged one.
TEST_F(CongestionTest, BeginsWithTenAndDoubles) {
  EXPECT_EQ(congestion.window_bytes(), 10 * kRoundMss);
  for (int i = 0; i < 10; ++i) ack(kRoundMss);
  EXPECT_EQ(congestion.window_bytes(), 20 * kRoundMss);
}

TEST_F(CongestionTest, DoesNotGrowWhileTheWindowIsNotTheLimit) {
  ack(5 * kRoundMss, /*limited=*/false);
  EXPECT_EQ(congestion.window_bytes(), 10 * kRoundMss);
}

// RFC 9438 section 4.6.
TEST_F(CongestionTest, RecoveryReducesToSeventyPercent) {
  congestion.enter_recovery(10 * kRoundMss);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kRoundMss);
  congestion.leave_recovery();
  EXPECT_EQ(congestion.window_bytes(), 7 * kRoundMss);
  EXPECT_FALSE(congestion.in_slow_start());
}

// RFC 5681 section 3.1: the loss window is one segment; ssthresh moves only once.
TEST_F(CongestionTest, TimeoutsReduceOnce) {
  congestion.on_timeout(true, SeqNum(0), 0);
  EXPECT_EQ(congestion.window_bytes(), kRoundMss);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kRoundMss);
  congestion.on_timeout(false, SeqNum(0), 0);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kRoundMss);
}

// Undoing a spurious timeout restores the window at the end of recovery, but not the cost of a real
// loss.
TEST_F(CongestionTest, UndoOfATimeoutInRecoveryKeepsItsReduction) {
  congestion.enter_recovery(10 * kRoundMss);
  congestion.on_recovery_ack(kRoundMss, true, 2 * kRoundMss);
  congestion.keep_reduction();
  congestion.on_timeout(false, SeqNum(0), 0);
  EXPECT_EQ(congestion.window_bytes(), kRoundMss);
  congestion.undo();
  EXPECT_EQ(congestion.window_bytes(), 7 * kRoundMss);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kRoundMss);
}

TEST_F(CongestionTest, UndoRestoresTheWindow) {
  congestion.on_timeout(true, SeqNum(0), 0);
  congestion.undo();
  EXPECT_EQ(congestion.window_bytes(), 10 * kRoundMss);
  EXPECT_TRUE(congestion.in_slow_start());
}

// Training computes between bursts: a burst that fills the window at once must not find it grown by
// the time in between.
TEST_F(CongestionTest, PauseBetweenBurstsDoesNotCount) {
  congestion.enter_recovery(10 * kRoundMss);
  congestion.leave_recovery();
  ack(kRoundMss);
  const std::uint32_t before = congestion.window_bytes();
  now += 60s;
  congestion.on_restart(now);
  ack(kRoundMss);
  EXPECT_LE(congestion.window_bytes(), before + kRoundMss / 5);
}

// Section 4.2: "only for the initial slow start". After a timeout ssthresh limits slow start.
TEST_F(CongestionTest, RoundTripsDoNotEndALaterSlowStart) {
  for (int i = 0; i < 90; ++i) ack(kRoundMss);
  congestion.on_timeout(true, SeqNum(number), 0);
  for (int i = 0; i < 9; ++i)
    for (int k = 0; k < 8; ++k) ack(kRoundMss / 2, /*limited=*/true, 1ms + i * 1ms);
  EXPECT_TRUE(congestion.in_slow_start());
  EXPECT_EQ(congestion.window_bytes(), kRoundMss + 36 * kRoundMss);
}

}  // namespace
}  // namespace ztcp::tcp
