// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The phases of Bbr, over a path that the test plays: each round trip delivers what was in flight,
// at most the path's bandwidth.
#include "transport/tcp/bbr.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;
using test::kRoundMss;
using Phase = Bbr::Phase;

class BbrTest : public testing::Test {
 protected:
  static constexpr Duration kTrip = 1ms;

  BbrTest() {
    window.mss_bytes = kRoundMss;
    window.cwnd_bytes = 10 * kRoundMss;
    bbr.begin(window);
  }

  // Bytes of a round trip that the path carries.
  std::uint32_t pipe() const { return static_cast<std::uint32_t>(path_bandwidth * 1e-3); }

  // One round trip of data that fills the window, or `offered_bytes` of it.
  void round(std::uint32_t offered_bytes = UINT32_MAX, double lost_share = 0) {
    const auto paced =
        static_cast<std::uint32_t>(static_cast<double>(bbr.pacing_rate(window, kTrip)) * 1e-3);
    // Bytes that the path did not carry wait in its queue.
    const std::uint32_t flight =
        std::min({window.cwnd_bytes, std::max(paced, 4 * kRoundMss) + queued, offered_bytes});
    queued = flight > pipe() ? flight - pipe() : 0;
    const Duration rtt = std::max<Duration>(
        kTrip, Duration(static_cast<Duration::rep>(flight * 1e9 / path_bandwidth)));
    constexpr std::uint32_t kAcks = 8;
    const std::uint64_t sent_at = delivered;
    for (std::uint32_t i = 0; i < kAcks; ++i) {
      now += rtt / kAcks;
      const std::uint32_t lost = static_cast<std::uint32_t>(flight * lost_share) / kAcks;
      const std::uint32_t bytes = flight / kAcks - lost;
      delivered += bytes;
      CongestionControl::Ack ack{.ack = SeqNum(0),
                                 .snd_nxt = SeqNum(0),
                                 .window_limited = flight == window.cwnd_bytes,
                                 .rtt_sample = rtt,
                                 .srtt = rtt,
                                 .min_rtt = kTrip,
                                 .resumed = resumed,
                                 .delivered_bytes = bytes,
                                 .lost_bytes = lost,
                                 .flight_bytes = flight};
      ack.rate = {.interval = rtt,
                  .bytes = flight - std::uint64_t{lost} * kAcks,
                  .delivered_bytes = delivered,
                  .prior_delivered_bytes = sent_at,
                  .lost_bytes = lost * kAcks,
                  .sent_flight_bytes = flight,
                  .app_limited = offered_bytes < window.cwnd_bytes};
      bbr.on_ack(now, ack, window);
    }
  }
  bool reach(Phase phase, int rounds = 200) {
    for (int i = 0; i < rounds; ++i) {
      if (bbr.phase() == phase) return true;
      round();
    }
    return bbr.phase() == phase;
  }

  double path_bandwidth = 100e6;
  Bbr bbr{SeqNum(12345)};
  CongestionControl::Window window;
  TimePoint now{1h};
  TimePoint resumed{};
  std::uint64_t delivered = 0;
  std::uint32_t queued = 0;
};

TEST_F(BbrTest, IsRateBasedAndPacesTheFirstWindow) {
  EXPECT_TRUE(window.rate_based);
  EXPECT_EQ(bbr.phase(), Phase::kStartup);
  EXPECT_EQ(bbr.pacing_rate(window, Duration::zero()), 0U) << "no round trip yet";
  EXPECT_NEAR(static_cast<double>(bbr.pacing_rate(window, 1ms)), 2.77 * 10e3 * kRoundMss, 2000);
}

TEST_F(BbrTest, StartupFindsTheBandwidthAndDrains) {
  ASSERT_TRUE(reach(Phase::kDrain, 20));
  EXPECT_NEAR(bbr.bandwidth(), path_bandwidth, 0.05 * path_bandwidth);
  EXPECT_EQ(bbr.min_rtt(), kTrip);
  EXPECT_LT(static_cast<double>(bbr.pacing_rate(window, kTrip)), 0.51 * path_bandwidth);
  ASSERT_TRUE(reach(Phase::kCruise, 10));
  EXPECT_LE(window.cwnd_bytes, 2 * pipe() + 8 * kRoundMss + pipe());
}

TEST_F(BbrTest, StartupDoesNotEndWhileTheUserIsTheLimit) {
  for (int i = 0; i < 20; ++i) round(5 * kRoundMss);
  EXPECT_EQ(bbr.phase(), Phase::kStartup);
}

TEST_F(BbrTest, StartupEndsByLossWithAQueue) {
  while (window.cwnd_bytes < 2 * pipe()) round();
  round(UINT32_MAX, 0.1);
  round(UINT32_MAX, 0.1);
  EXPECT_NE(bbr.phase(), Phase::kStartup);
  EXPECT_LT(bbr.high_bytes(), CongestionControl::Window::kMaxBytes);
}

TEST_F(BbrTest, CyclesThroughRefillUpAndDown) {
  ASSERT_TRUE(reach(Phase::kCruise));
  ASSERT_TRUE(reach(Phase::kRefill));
  EXPECT_EQ(bbr.low_bytes(), CongestionControl::Window::kMaxBytes);
  ASSERT_TRUE(reach(Phase::kUp, 3));
  EXPECT_GT(static_cast<double>(bbr.pacing_rate(window, kTrip)), 1.2 * path_bandwidth);
  ASSERT_TRUE(reach(Phase::kDown, 15));
  EXPECT_LT(static_cast<double>(bbr.pacing_rate(window, kTrip)), 0.95 * path_bandwidth);
}

TEST_F(BbrTest, ProbingFindsMoreBandwidth) {
  ASSERT_TRUE(reach(Phase::kCruise));
  path_bandwidth *= 2;
  for (int i = 0; i < 400; ++i) round();
  EXPECT_GT(bbr.bandwidth(), 0.9 * path_bandwidth);
}

TEST_F(BbrTest, BandwidthFallsAfterTwoCycles) {
  ASSERT_TRUE(reach(Phase::kCruise));
  path_bandwidth /= 2;
  for (int i = 0; i < 400; ++i) round();
  EXPECT_LT(bbr.bandwidth(), 1.1 * path_bandwidth);
}

// The bound of a probe in which more than 2 % was lost.
TEST_F(BbrTest, LossWhileProbingBoundsTheBytesInFlight) {
  ASSERT_TRUE(reach(Phase::kCruise));
  for (int i = 0; i < 20; ++i) round();  // The floor is known.
  ASSERT_TRUE(reach(Phase::kUp));
  round(UINT32_MAX, 0.08);
  EXPECT_NE(bbr.phase(), Phase::kUp);
  const std::uint32_t high = bbr.high_bytes();
  EXPECT_LT(high, CongestionControl::Window::kMaxBytes);
  ASSERT_TRUE(reach(Phase::kCruise));
  round();
  EXPECT_LE(window.cwnd_bytes, high - high / 10) << "headroom for others";
}

TEST_F(BbrTest, CongestedRoundWhileCruisingLowersTheBounds) {
  ASSERT_TRUE(reach(Phase::kCruise));
  for (int i = 0; i < 20 || bbr.phase() != Phase::kCruise; ++i) round();
  round(UINT32_MAX, 0.3);
  round(UINT32_MAX, 0.3);
  EXPECT_LT(bbr.low_bytes(), CongestionControl::Window::kMaxBytes);
  EXPECT_LT(bbr.bandwidth(), path_bandwidth);
}

// The same loss in each round: the path's own.
TEST_F(BbrTest, SteadyLossWithoutAQueueSlowsNothing) {
  for (int i = 0; i < 600; ++i) round(UINT32_MAX, 0.04);
  EXPECT_GT(bbr.loss_floor().share(), 0.02);
  EXPECT_GT(bbr.bandwidth(), 0.9 * path_bandwidth);
}

TEST_F(BbrTest, UndoRestoresTheBounds) {
  ASSERT_TRUE(reach(Phase::kCruise));
  for (int i = 0; i < 20 || bbr.phase() != Phase::kCruise; ++i) round();
  bbr.save();
  round(UINT32_MAX, 0.3);
  round(UINT32_MAX, 0.3);
  bbr.undo();
  EXPECT_EQ(bbr.low_bytes(), CongestionControl::Window::kMaxBytes);
}

TEST_F(BbrTest, ProbesTheRoundTripEveryFiveSeconds) {
  ASSERT_TRUE(reach(Phase::kCruise));
  const TimePoint begin = now;
  // The round trip never falls to the smallest again.
  path_bandwidth *= 0.9;
  bool probed = false;
  std::uint32_t least = window.cwnd_bytes;
  while (now < begin + 7s) {
    round();
    if (bbr.phase() != Phase::kProbeRtt) continue;
    probed = true;
    least = std::min(least, window.cwnd_bytes);
  }
  EXPECT_TRUE(probed);
  EXPECT_LE(least, pipe() * 6 / 10);
  EXPECT_NE(bbr.phase(), Phase::kProbeRtt) << "16 round trips";
}

// Training computes between bursts: the pause has emptied the queue, and needs no probe.
TEST_F(BbrTest, IdleTimeNeedsNoProbeOfTheRoundTrip) {
  ASSERT_TRUE(reach(Phase::kCruise));
  now += 8s;
  resumed = now;
  round();
  EXPECT_NE(bbr.phase(), Phase::kProbeRtt);
  EXPECT_GT(bbr.bandwidth(), 0.9 * path_bandwidth);
}

TEST_F(BbrTest, WindowIsNeverBelowFourSegments) {
  path_bandwidth = kRoundMss * 500.0;
  for (int i = 0; i < 100; ++i) round(UINT32_MAX, 0.3);
  EXPECT_GE(window.cwnd_bytes, 4 * kRoundMss);
}

}  // namespace
}  // namespace ztcp::tcp
