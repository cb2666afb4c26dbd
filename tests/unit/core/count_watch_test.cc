// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/count_watch.h"

#include <gtest/gtest.h>

namespace ztcp {
namespace {

using namespace std::chrono_literals;

struct CountWatchTest : testing::Test {
  std::optional<CountFinding> check(Duration later) {
    now += later;
    const std::array<CountWatch::Part, 2> totals = {{{"silent", silent}, {"senseless", senseless}}};
    return watch.check(now, 10, totals);
  }
  CountWatch watch;
  std::uint64_t silent = 0;
  std::uint64_t senseless = 0;
  TimePoint now{1000s};
};

TEST_F(CountWatchTest, FewEventsAreNotReported) {
  EXPECT_FALSE(check(0s));
  for (int minute = 0; minute < 10; ++minute) {
    silent += 9;
    EXPECT_FALSE(check(61s));
  }
}

TEST_F(CountWatchTest, ManyEventsAreReportedByKind) {
  EXPECT_FALSE(check(0s));
  silent = 30;
  senseless = 7;
  const auto found = check(3s);
  ASSERT_TRUE(found);
  EXPECT_EQ(describe(*found, {"rejected", "connections"}, "close the port"),
            "rejected 37 connections in 3 s (30 silent, 7 senseless): close the port");
}

TEST_F(CountWatchTest, ReportsOnceAMinuteWithAllEventsSince) {
  int lines = 0;
  std::uint64_t told = 0;
  for (int second = 0; second < 600; ++second) {
    silent += 100;
    if (const auto found = check(1s)) {
      ++lines;
      told += found->total();
    }
  }
  EXPECT_EQ(lines, 10);
  EXPECT_GT(told, 540U * 100);
}

}  // namespace
}  // namespace ztcp
