// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/stall_watch.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using std::chrono::microseconds;

class StallWatchTest : public testing::Test {
 protected:
  // Calls it until one call looks.
  std::optional<std::uint64_t> check() {
    for (std::uint32_t i = 1; i < StallWatch::kCallsPerCheck; ++i)
      EXPECT_FALSE(watch_.stuck_at(turns_, read_clock_));
    return watch_.stuck_at(turns_, read_clock_);
  }

  StallWatch watch_{microseconds(200)};
  std::atomic<std::uint64_t> turns_{7};
  TimePoint now_{std::chrono::seconds(5)};
  int clock_readings_ = 0;
  const std::function<TimePoint()> read_clock_ = [this] {
    ++clock_readings_;
    return now_;
  };
};

TEST_F(StallWatchTest, TurnsThatStandStillForTheTimeoutAreReported) {
  EXPECT_EQ(check(), std::nullopt);
  now_ += microseconds(199);
  EXPECT_EQ(check(), std::nullopt);
  now_ += microseconds(1);
  EXPECT_EQ(check(), 7U);
  EXPECT_EQ(check(), 7U) << "no thread has run one since";
  turns_ = 8;
  EXPECT_EQ(check(), std::nullopt);
}

// The calling thread was scheduled out itself, or had other work.
TEST_F(StallWatchTest, TurnsThatRanSinceTheLastLookAreNotReportedHoweverLongAgoItWas) {
  EXPECT_EQ(check(), std::nullopt);
  now_ += std::chrono::seconds(1);
  turns_ = 8;
  EXPECT_EQ(check(), std::nullopt);
  now_ += microseconds(199);
  EXPECT_EQ(check(), std::nullopt) << "counted from the check that saw a new turn";
}

TEST_F(StallWatchTest, ClockIsReadOncePerLook) {
  for (std::uint32_t i = 0; i < 10 * StallWatch::kCallsPerCheck; ++i)
    watch_.stuck_at(turns_, read_clock_);
  EXPECT_EQ(clock_readings_, 10);
}

}  // namespace
}  // namespace ztcp::comms
