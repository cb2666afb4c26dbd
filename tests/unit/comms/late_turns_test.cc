// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/late_turns.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr TimePoint kStart{std::chrono::seconds(5)};

TEST(LateTurns, CountsTurnsThatRunAMillisecondAfterTheyAreDue) {
  LateTurns turns;
  turns.on_turn(kStart);
  EXPECT_EQ(turns.count(), 0U) << "none was due";
  turns.expect(kStart);
  turns.on_turn(kStart + microseconds(999));
  EXPECT_EQ(turns.text(), "");
  turns.expect(kStart + milliseconds(10));
  turns.on_turn(kStart + milliseconds(4));
  EXPECT_EQ(turns.count(), 0U) << "the thread was woken early";
  turns.on_turn(kStart + milliseconds(11));
  EXPECT_EQ(turns.text(), ", and its thread ran late 1 time, by up to 1.0 ms");
}

TEST(LateTurns, TextHasTheLongestDelayOfSeveral) {
  LateTurns turns;
  for (const auto late : {microseconds(1200), microseconds(4100), microseconds(2000)}) {
    turns.expect(kStart);
    turns.on_turn(kStart + late);
  }
  EXPECT_EQ(turns.count(), 3U);
  EXPECT_EQ(turns.longest(), microseconds(4100));
  EXPECT_EQ(turns.text(), ", and its thread ran late 3 times, by up to 4.1 ms");
}

TEST(LateTurns, CountsNoneWhereNoneIsDue) {
  LateTurns turns;
  turns.expect(kStart);
  turns.expect_none();
  turns.on_turn(kStart + milliseconds(50));
  EXPECT_EQ(turns.count(), 0U);
}

}  // namespace
}  // namespace ztcp::comms
