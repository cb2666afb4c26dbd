// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/poll_gaps.h"

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

TEST(PollGaps, TheLongestOfTheRecentOnesCounts) {
  PollGaps gaps;
  TimePoint now{1h};
  gaps.note(now, 40ms);
  for (int turn = 0; turn < 900; ++turn) gaps.note(now += 1ms, 1ms);
  EXPECT_EQ(gaps.longest(), 40ms);
  gaps.note(now += 50ms, 50ms);
  EXPECT_EQ(gaps.longest(), 50ms);
}

TEST(PollGaps, AGapIsForgottenAfterTwoWindows) {
  PollGaps gaps;
  TimePoint now{1h};
  gaps.note(now, 40ms);
  for (const TimePoint end = now + 2 * PollGaps::kWindow; now <= end; now += 1ms)
    gaps.note(now, 1ms);
  EXPECT_EQ(gaps.longest(), 1ms);
}

TEST(PollGaps, ARecurringGapIsNotForgotten) {
  PollGaps gaps;
  TimePoint now{1h};
  for (int turn = 0; turn < 10'000; ++turn) {
    const Duration gap = turn % 700 == 0 ? 40ms : 1ms;  // A CPU quota that runs out.
    gaps.note(now += gap, gap);
    ASSERT_EQ(gaps.longest(), 40ms) << turn;
  }
}

// Stopped by a signal, for example: no earlier gap is recent.
TEST(PollGaps, AnAbsenceLongerThanTheWindowCounts) {
  PollGaps gaps;
  TimePoint now{1h};
  gaps.note(now, 40ms);
  gaps.note(now += 5s, 5s);
  EXPECT_EQ(gaps.longest(), 5s);
  gaps.note(now += 2 * PollGaps::kWindow, 1ms);
  EXPECT_EQ(gaps.longest(), 1ms);
}

}  // namespace
}  // namespace ztcp::tcp
