// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/cubic_curve.h"

#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

// RFC 9438 section 4.2 with figures worked by hand: W_max 100, beta 0.7, so the window begins at 70
// and K = cbrt(30 / 0.4) = 4.217 s; at K it is W_max again. The path is long (100 ms), otherwise
// Reno's line would be above the curve.
TEST(CubicCurve, ReachesTheOldMaximumAtK) {
  CubicCurve cubic;
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
TEST(CubicCurve, FastConvergenceLeavesRoom) {
  CubicCurve cubic;
  cubic.on_congestion(100);
  cubic.on_congestion(80);
  EXPECT_DOUBLE_EQ(cubic.w_max(), 80 * 1.7 / 2);
}

// Section 4.3: on short paths Reno's line is above the curve.
TEST(CubicCurve, IsNeverSlowerThanReno) {
  CubicCurve cubic;
  double window = cubic.on_congestion(100);
  TimePoint now{1h};
  for (int round = 0; round < 50; ++round, now += 100us) {
    const double begin = window;
    for (int i = 0; i < 10; ++i) window = cubic.on_ack(now, 100us, window, begin / 10);
  }
  // 0.53 segments per round trip, up to the window before the reduction.
  EXPECT_NEAR(window, 70 + 50 * CubicCurve::kAlpha, 1);
}

// Section 4.8: after a timeout the curve begins at its own plateau.
TEST(CubicCurve, TimeoutZeroesK) {
  CubicCurve cubic;
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

TEST(CubicCurve, IdleTimeDoesNotCount) {
  CubicCurve cubic;
  TimePoint now{1h};
  const double window = cubic.on_congestion(100);
  cubic.on_ack(now, 1ms, window, 1);
  now += 60s;
  cubic.on_idle(now);
  EXPECT_NEAR(cubic.on_ack(now, 1ms, window, 1), window, 1);
}

}  // namespace
}  // namespace ztcp::tcp
