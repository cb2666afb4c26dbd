// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/rtt_estimator.h"

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

RttEstimator estimator() { return RttEstimator({200ms, 5ms, 2s}); }

TEST(RttEstimator, BeginsWithTheInitialTimeout) { EXPECT_EQ(estimator().rto(), 200ms); }

// RFC 6298 (2.2): SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR = 3R.
TEST(RttEstimator, FirstSampleCountsThreefold) {
  RttEstimator e = estimator();
  e.on_sample(TimePoint{}, 40ms);
  EXPECT_EQ(e.srtt(), 40ms);
  EXPECT_EQ(e.rttvar(), 20ms);
  EXPECT_EQ(e.rto(), 120ms);
}

// RFC 6298 (2.3): RTTVAR = 3/4 * 20 + 1/4 * |40 - 80| = 25; SRTT = 7/8 * 40 + 1/8 * 80 = 45.
TEST(RttEstimator, VarianceUsesTheOldMean) {
  RttEstimator e = estimator();
  e.on_sample(TimePoint{}, 40ms);
  e.on_sample(TimePoint{}, 80ms);
  EXPECT_EQ(e.rttvar(), 25ms);
  EXPECT_EQ(e.srtt(), 45ms);
  EXPECT_EQ(e.rto(), 145ms);
}

TEST(RttEstimator, StaysWithinItsLimits) {
  RttEstimator e = estimator();
  e.on_sample(TimePoint{}, 50us);
  EXPECT_EQ(e.rto(), 5050us) << "the floor stands beside the round trip";
  EXPECT_EQ(e.rto(/*floor=*/30ms), 30ms);
  EXPECT_EQ(e.rto(/*floor=*/3s), 3s) << "the poller's gap overrides the maximum";
}

// RFC 6298 (5.5) doubles the timeout; a sample ends the backoff.
TEST(RttEstimator, BacksOffUntilASample) {
  RttEstimator e = estimator();
  e.back_off();
  EXPECT_EQ(e.rto(), 400ms);
  e.back_off();
  EXPECT_EQ(e.rto(), 800ms);
  for (int i = 0; i < 40; ++i) e.back_off();
  EXPECT_EQ(e.rto(), 2s);
  e.on_sample(TimePoint{}, 10ms);
  EXPECT_EQ(e.rto(), 30ms);
}

TEST(RttEstimator, MinimumIsForgottenAfterTwoWindows) {
  RttEstimator e = estimator();
  TimePoint now{1h};
  e.on_sample(now, 100us);
  e.on_sample(now, 300us);
  EXPECT_EQ(e.min_rtt(), 100us);
  now += RttEstimator::kMinRttWindow + 1s;
  e.on_sample(now, 300us);
  EXPECT_EQ(e.min_rtt(), 100us) << "the window before still counts";
  now += RttEstimator::kMinRttWindow + 1s;
  e.on_sample(now, 200us);
  EXPECT_EQ(e.min_rtt(), 200us);
}

}  // namespace
}  // namespace ztcp::tcp
