// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/line_model.h"

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kLineStart{1s};

TEST(LineModel, EmptiesAtTheSpeedOfTheLine) {
  LineModel line;
  line.set_speed(10'000);
  EXPECT_EQ(line.queued_bytes(kLineStart), 0U);
  line.add(125'000);
  EXPECT_EQ(line.queued_bytes(kLineStart), 125'000U);
  EXPECT_EQ(line.queued_bytes(kLineStart + 40us), 75'000U);
  EXPECT_EQ(line.queued_bytes(kLineStart + 100us), 0U);
  EXPECT_EQ(line.queued_bytes(kLineStart + 10s), 0U);
}

// A spinning poller asks every 100 ns, in which 1 Gb/s is 12 and a half bytes.
TEST(LineModel, ShortTurnsLoseNothing) {
  LineModel line;
  line.set_speed(1'000);
  line.queued_bytes(kLineStart);
  line.add(125'000);
  TimePoint now = kLineStart;
  for (int i = 0; i < 5'000; ++i) line.queued_bytes(now += 100ns);
  EXPECT_EQ(line.queued_bytes(now), 62'500U);
}

TEST(LineModel, AnUnknownSpeedReportsNothingQueued) {
  LineModel line;
  line.add(1U << 30U);
  EXPECT_EQ(line.queued_bytes(kLineStart), 0U);
  line.set_speed(400'000);
  EXPECT_EQ(line.queued_bytes(kLineStart + 1us), 0U);
  line.add(1000);
  line.set_speed(0);  // No carrier.
  EXPECT_EQ(line.queued_bytes(kLineStart + 1us), 0U);
}

}  // namespace
}  // namespace ztcp::link
