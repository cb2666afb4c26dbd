// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/running_clock.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

using namespace std::chrono_literals;

TEST(RunningClock, PassesWithRealTime) {
  TimePoint real(10s);
  RunningClock clock(real, 1s);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(clock.at(real += 999ms), real);
  EXPECT_EQ(clock.peek(real + 1h), real + 1h) << "only a reading ends a gap";
}

TEST(RunningClock, AStopCountsAsTheLongestGap) {
  const TimePoint begin(10s);
  RunningClock clock(begin, 1s);
  EXPECT_EQ(clock.at(begin + 13s), begin + 1s);
  EXPECT_EQ(clock.at(begin + 13500ms), begin + 1500ms);
  EXPECT_EQ(clock.peek(begin + 14s), begin + 2s);
  EXPECT_EQ(clock.at(begin + 1h), begin + 2500ms);
}

}  // namespace
}  // namespace ztcp
