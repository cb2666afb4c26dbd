// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/path_quality.h"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

using Verdict = PathQuality::Verdict;

class PathQualityTest : public testing::Test {
 protected:
  struct Seen {
    std::uint32_t timeouts = 0;
    std::uint64_t repeated = 0;
    std::uint64_t marked = 0;
    std::uint64_t bytes = 1'000'000;
  };
  Verdict check(const Seen& seen, bool are_others_good = true) {
    health_.timeouts += seen.timeouts;
    health_.retransmitted_bytes += seen.repeated;
    health_.marked_bytes += seen.marked;
    health_.delivered_bytes += seen.bytes;
    const Verdict verdict = quality_.check(health_);
    quality_.compare(are_others_good);
    return verdict;
  }
  PathQuality quality_;
  StreamHealth health_;
};

TEST_F(PathQualityTest, PathThatCarriesBytesWithoutTrouble_IsGood) {
  EXPECT_EQ(check({}), Verdict::kGood);
  EXPECT_EQ(check({.repeated = 10'000, .marked = 400'000}), Verdict::kGood);
  EXPECT_EQ(check({.bytes = 1000}), Verdict::kUnknown) << "nearly idle";
  EXPECT_EQ(check({.marked = 600'000}), Verdict::kUnknown);
  EXPECT_EQ(check({.repeated = 50'000}), Verdict::kUnknown);
  EXPECT_EQ(check({.timeouts = 1, .repeated = 100'000}), Verdict::kUnknown) << "a full queue";
}

TEST_F(PathQualityTest, PathWithManyMarksOrTimeoutsAndLosses_IsBad) {
  EXPECT_EQ(check({.timeouts = 1, .repeated = 125'000}), Verdict::kBad);
  EXPECT_EQ(check({.timeouts = 1, .bytes = 0}), Verdict::kBad);
  EXPECT_EQ(check({.marked = 700'000}), Verdict::kBad);
}

TEST_F(PathQualityTest, PathThatIsBadAtThreeChecksInARow_IsWorthLeaving) {
  const Seen lossy{.timeouts = 1, .repeated = 500'000};
  check(lossy);
  check({.bytes = 0});
  check(lossy);
  check({});
  check(lossy);
  check({.marked = 800'000});
  EXPECT_FALSE(quality_.is_worth_leaving());
  check(lossy);
  EXPECT_TRUE(quality_.is_worth_leaving());
  EXPECT_EQ(quality_.timeouts(), 2U);
  EXPECT_EQ(quality_.marked_percent(), 26U);
}

TEST_F(PathQualityTest, ChecksAtWhichOthersAreBad_DoNotCount) {
  const Seen lossy{.timeouts = 1, .repeated = 500'000};
  for (int i = 0; i < 5; ++i) check(lossy, false);
  EXPECT_EQ(quality_.bad_checks(), 0U);
}

TEST_F(PathQualityTest, LongRoundTrips_NeedMoreChecks) {
  health_.srtt = std::chrono::milliseconds(50);
  for (int i = 0; i < 5; ++i) check({.marked = 800'000});
  EXPECT_FALSE(quality_.is_worth_leaving());
  check({.marked = 800'000});
  EXPECT_TRUE(quality_.is_worth_leaving()) << "12 round trips";
}

}  // namespace
}  // namespace ztcp::msg
