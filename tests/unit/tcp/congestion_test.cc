// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/congestion.h"

#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMss = 1000;

class CongestionTest : public testing::Test {
 protected:
  CongestionTest() { congestion.begin(kMss, 10, SeqNum(0)); }
  void ack(std::uint32_t bytes, bool limited = true, Duration rtt = {}) {
    number += bytes;
    congestion.on_ack(now, {.ack = SeqNum(number),
                            .snd_nxt = SeqNum(number + congestion.window_bytes()),
                            .acked_bytes = bytes,
                            .window_limited = limited,
                            .rtt_sample = rtt,
                            .srtt = 1ms});
  }
  Congestion congestion;
  TimePoint now{1h};
  std::uint32_t number = 0;
};

// RFC 6928, then RFC 5681 section 3.1: a segment more for each acknowledged.
TEST_F(CongestionTest, BeginsWithTenAndDoubles) {
  EXPECT_EQ(congestion.window_bytes(), 10 * kMss);
  for (int i = 0; i < 10; ++i) ack(kMss);
  EXPECT_EQ(congestion.window_bytes(), 20 * kMss);
}

TEST_F(CongestionTest, DoesNotGrowWhileSomethingElseLimits) {
  ack(5 * kMss, /*limited=*/false);
  EXPECT_EQ(congestion.window_bytes(), 10 * kMss);
}

// RFC 9438 section 4.6.
TEST_F(CongestionTest, RecoveryReducesToSeventyPercent) {
  congestion.enter_recovery(10 * kMss);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kMss);
  congestion.leave_recovery();
  EXPECT_EQ(congestion.window_bytes(), 7 * kMss);
  EXPECT_FALSE(congestion.in_slow_start());
}

// RFC 5681 section 3.1: the loss window is one segment; ssthresh moves only once.
TEST_F(CongestionTest, TimeoutsReduceOnce) {
  congestion.on_timeout(true, SeqNum(0), 0);
  EXPECT_EQ(congestion.window_bytes(), kMss);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kMss);
  congestion.on_timeout(false, SeqNum(0), 0);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kMss);
}

// A timeout that was none gives back what recovery would have come to, and not what a real loss has
// cost.
TEST_F(CongestionTest, UndoOfATimeoutInRecoveryKeepsItsReduction) {
  congestion.enter_recovery(10 * kMss);
  congestion.on_recovery_ack(kMss, true, 2 * kMss);
  congestion.keep_reduction();
  congestion.on_timeout(false, SeqNum(0), 0);
  EXPECT_EQ(congestion.window_bytes(), kMss);
  congestion.undo();
  EXPECT_EQ(congestion.window_bytes(), 7 * kMss);
  EXPECT_EQ(congestion.ssthresh_bytes(), 7 * kMss);
}

TEST_F(CongestionTest, UndoRestoresWhatWas) {
  congestion.on_timeout(true, SeqNum(0), 0);
  congestion.undo();
  EXPECT_EQ(congestion.window_bytes(), 10 * kMss);
  EXPECT_TRUE(congestion.in_slow_start());
}

// RFC 9438 section 4.2 with figures worked by hand: W_max 100, beta 0.7, so the window begins at
// 70 and K = cbrt(30 / 0.4) = 4.217 s; at K it is W_max again. The path is long (100 ms), or Reno's
// line would be above the curve.
TEST(Cubic, ReachesTheOldMaximumAtK) {
  Cubic cubic;
  EXPECT_DOUBLE_EQ(cubic.on_congestion(100), 70);
  TimePoint now{1h};
  double window = cubic.on_ack(now, 100ms, 70, 1);
  EXPECT_NEAR(cubic.k_seconds(), std::cbrt(75.0), 1e-9);
  const TimePoint end = now + std::chrono::milliseconds(4217);
  for (; now < end; now += 5ms) window = cubic.on_ack(now, 100ms, window, window / 20);
  EXPECT_NEAR(window, 100, 1);
  EXPECT_LE(window, 100.5) << "flat around the old maximum";
}

// Section 4.7: (1 + beta) / 2 of the window when it shrinks from one event to the next.
TEST(Cubic, FastConvergenceLeavesRoom) {
  Cubic cubic;
  cubic.on_congestion(100);
  cubic.on_congestion(80);
  EXPECT_DOUBLE_EQ(cubic.w_max(), 80 * 1.7 / 2);
}

// Section 4.3: on short paths Reno's line is above the curve.
TEST(Cubic, IsNeverSlowerThanReno) {
  Cubic cubic;
  double window = cubic.on_congestion(100);
  TimePoint now{1h};
  for (int round = 0; round < 50; ++round, now += 100us) {
    const double begin = window;
    for (int i = 0; i < 10; ++i) window = cubic.on_ack(now, 100us, window, begin / 10);
  }
  // 0.53 segments per round trip, up to the window before the reduction.
  EXPECT_NEAR(window, 70 + 50 * Cubic::kAlpha, 1);
}

// Section 4.8: after a timeout the curve begins at its own plateau.
TEST(Cubic, TimeoutZeroesK) {
  Cubic cubic;
  cubic.on_congestion(100);
  cubic.on_timeout();
  TimePoint now{1h};
  double window = cubic.on_ack(now, 100ms, 70, 1);
  EXPECT_EQ(cubic.k_seconds(), 0);
  EXPECT_EQ(cubic.w_max(), 70);
  const TimePoint end = now + 4217ms;
  for (; now < end; now += 5ms) window = cubic.on_ack(now, 100ms, window, window / 20);
  EXPECT_NEAR(window, 100, 2) << "30 segments in 4.217 s, all of it upwards";
}

TEST(Cubic, IdleTimeDoesNotCount) {
  Cubic cubic;
  TimePoint now{1h};
  const double window = cubic.on_congestion(100);
  cubic.on_ack(now, 1ms, window, 1);
  now += 60s;
  cubic.on_idle(now);
  EXPECT_NEAR(cubic.on_ack(now, 1ms, window, 1), window, 1);
}

// Training computes between bursts: a burst that fills the window at once must not find it grown
// by the time in between.
TEST_F(CongestionTest, PauseBetweenBurstsDoesNotCount) {
  congestion.enter_recovery(10 * kMss);
  congestion.leave_recovery();
  ack(kMss);
  const std::uint32_t before = congestion.window_bytes();
  now += 60s;
  congestion.on_restart(now);
  ack(kMss);
  EXPECT_LE(congestion.window_bytes(), before + kMss / 5);
}

// RFC 6937 section 3.1, its first example: 100 segments out, one lost, ssthresh 70: seven sent
// for every ten delivered.
TEST(Prr, SendsInProportion) {
  Prr prr;
  prr.begin(100 * kMss);
  std::uint32_t pipe = 99 * kMss;
  std::uint32_t sent = 0;
  for (int i = 0; i < 40; ++i) {
    pipe -= kMss;
    const std::uint32_t window = prr.on_ack(kMss, false, pipe, 70 * kMss, kMss);
    while (pipe + kMss <= window) {
      pipe += kMss;
      sent += kMss;
      prr.on_sent(kMss);
    }
  }
  EXPECT_NEAR(sent, 28 * kMss, kMss);
}

TEST(Prr, LetsTheFirstRetransmissionOut) {
  Prr prr;
  prr.begin(10 * kMss);
  EXPECT_GE(prr.on_ack(0, false, 10 * kMss, 7 * kMss, kMss), 11 * kMss);
}

// Below ssthresh: one segment more than was delivered while there is progress, exactly what was
// delivered otherwise.
TEST(Prr, GrowsBackCarefullyAfterHeavyLoss) {
  Prr prr;
  prr.begin(100 * kMss);
  prr.on_sent(kMss);
  EXPECT_EQ(prr.on_ack(2 * kMss, true, 10 * kMss, 70 * kMss, kMss), 13 * kMss);
  EXPECT_EQ(prr.on_ack(kMss, false, 10 * kMss, 70 * kMss, kMss), 12 * kMss);
}

// RFC 9406 section 4.2: eight samples of a round above the last round's least plus the threshold.
TEST(HyStart, LeavesSlowStartWhenTheRoundTripGrows) {
  HyStart hystart;
  hystart.begin(SeqNum(0));
  std::uint32_t number = 0;
  const auto round = [&](Duration rtt) {
    std::uint32_t growth = 0;
    for (int i = 0; i < 10; ++i) {
      number += 1000;
      growth += hystart.on_ack(SeqNum(number), SeqNum(number + 10'000), 1000, rtt);
    }
    return growth;
  };
  round(1ms);
  EXPECT_EQ(round(1ms), 10'000U);
  round(1240us);
  EXPECT_FALSE(hystart.in_css()) << "the threshold is 250 us";
  round(2ms);
  EXPECT_TRUE(hystart.in_css());
  EXPECT_EQ(round(2ms), 2500U) << "a quarter of slow start";
  for (int i = 0; i < 5; ++i) round(2ms);
  EXPECT_TRUE(hystart.is_done());
}

// Peers that acknowledge once per burst. The round ends with the ACK of all that was sent when it
// began ("when windowEnd is ACKed", section 4.2).
TEST(HyStart, SeesGrowthInRoundsOfFewAcks) {
  for (const int acks : {1, 2, 7}) {
    HyStart hystart;
    hystart.begin(SeqNum(0));
    std::uint32_t number = 0;
    // All of a window is acknowledged before the next one is sent.
    const auto round = [&](Duration rtt) {
      const std::uint32_t end = number + static_cast<std::uint32_t>(acks) * 1000;
      while (number != end) {
        number += 1000;
        hystart.on_ack(SeqNum(number), SeqNum(end), 1000, rtt);
      }
    };
    round(1ms);
    round(1ms);
    round(1200us);
    EXPECT_FALSE(hystart.in_css()) << acks;
    round(2ms);
    EXPECT_TRUE(hystart.in_css()) << acks;
    for (int i = 0; i < 5; ++i) round(2ms + i * 1ms);
    EXPECT_TRUE(hystart.is_done()) << acks;
  }
}

TEST(HyStart, OneLateSampleMustBeLateByTwiceAsMuch) {
  HyStart hystart;
  hystart.begin(SeqNum(1000));
  std::uint32_t number = 0;
  const auto round = [&](Duration rtt) {
    number += 1000;
    hystart.on_ack(SeqNum(number), SeqNum(number + 1000), 1000, rtt);
  };
  round(1ms);
  round(1ms);
  round(1400us);
  EXPECT_FALSE(hystart.in_css());
  round(1ms);
  round(1600us);
  EXPECT_TRUE(hystart.in_css());
  round(1ms);
  EXPECT_FALSE(hystart.in_css()) << "it was noise";
}

// Section 4.2: "only for the initial slow start". After a timeout ssthresh says where to end.
TEST_F(CongestionTest, RoundTripsDoNotEndALaterSlowStart) {
  for (int i = 0; i < 90; ++i) ack(kMss);
  congestion.on_timeout(true, SeqNum(number), 0);
  for (int i = 0; i < 9; ++i)
    for (int k = 0; k < 8; ++k) ack(kMss / 2, /*limited=*/true, 1ms + i * 1ms);
  EXPECT_TRUE(congestion.in_slow_start());
  EXPECT_EQ(congestion.window_bytes(), kMss + 36 * kMss);
}

// While the user is the limit no ACK comes here, and more than half the numbers may pass.
TEST(HyStart, RoundEndsAfterNumbersThatWentHalfRound) {
  HyStart hystart;
  hystart.begin(SeqNum(0));
  std::uint32_t number = 0x90000000;
  const auto round = [&](Duration rtt) {
    for (int i = 0; i < 10; ++i) {
      number += 1000;
      hystart.on_ack(SeqNum(number), SeqNum(number + 10'000), 1000, rtt);
    }
  };
  round(1ms);
  round(1ms);
  round(2ms);
  EXPECT_TRUE(hystart.in_css());
}

TEST(HyStart, ComesBackWhenTheGrowthWasNoise) {
  HyStart hystart;
  hystart.begin(SeqNum(0));
  std::uint32_t number = 0;
  for (const Duration rtt : {Duration(1ms), Duration(3ms), Duration(1ms)})
    for (int i = 0; i < 20; ++i) {
      number += 1000;
      hystart.on_ack(SeqNum(number), SeqNum(number + 20'000), 1000, rtt);
    }
  EXPECT_FALSE(hystart.in_css());
  EXPECT_FALSE(hystart.is_done());
}

}  // namespace
}  // namespace ztcp::tcp
