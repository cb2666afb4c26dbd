// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_switch/idle.h"

#include <gtest/gtest.h>

namespace ztcp::fabric {
namespace {

using namespace std::chrono_literals;
using Action = Idle::Action;

TEST(Idle, SpinsThenYieldsThenSleepsEverLonger) {
  Idle idle({.spin = 50us, .yield = 1ms, .max_sleep = 1ms});
  const TimePoint t{1s};
  EXPECT_EQ(idle.on_idle(t, kNever).action, Action::kSpin);
  EXPECT_EQ(idle.on_idle(t + 49us, kNever).action, Action::kSpin);
  EXPECT_EQ(idle.on_idle(t + 50us, kNever).action, Action::kYield);
  const Idle::Step first = idle.on_idle(t + 1050us, kNever);
  EXPECT_EQ(first.action, Action::kSleep);
  EXPECT_GE(first.sleep, Duration(50us));
  EXPECT_GT(idle.on_idle(t + 10ms, kNever).sleep, first.sleep);
  EXPECT_EQ(idle.on_idle(t + 10s, kNever).sleep, Duration(1ms));
}

TEST(Idle, WorkRestartsTheSequence) {
  Idle idle({.spin = 50us, .max_sleep = 1ms});
  idle.on_idle(TimePoint{1s}, kNever);
  EXPECT_EQ(idle.on_idle(TimePoint{2s}, kNever).action, Action::kSleep);
  idle.on_work();
  EXPECT_EQ(idle.on_idle(TimePoint{2s}, kNever).action, Action::kSpin);
}

TEST(Idle, NeverSleepsPastADeadline) {
  Idle idle({.spin = 0us, .max_sleep = 1ms});
  idle.on_idle(TimePoint{1s}, kNever);
  const Idle::Step step = idle.on_idle(TimePoint{3s}, TimePoint{3s} + 20us);
  EXPECT_EQ(step.action, Action::kSleep);
  EXPECT_EQ(step.sleep, Duration(20us));
  EXPECT_EQ(idle.on_idle(TimePoint{3s}, TimePoint{3s}).action, Action::kYield);
}

}  // namespace
}  // namespace ztcp::fabric
