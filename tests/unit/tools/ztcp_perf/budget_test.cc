// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/budget.h"

#include <gtest/gtest.h>

namespace ztcp::perf {
namespace {

TEST(Budget, WithoutALimitGivesWhatIsWanted) {
  const Budget budget(0);
  EXPECT_EQ(budget.iterations(20, 1000, 0, 0, 1), 20);
  EXPECT_TRUE(budget.admits(1U << 30U, 1e9, 1));
}

TEST(Budget, SharesWhatIsLeftAmongTheSizesLeft) {
  const Budget budget(60);
  EXPECT_EQ(budget.iterations(20, 0.001, 0, 10, 5), 20) << "10 s for 20 ms";
  EXPECT_EQ(budget.iterations(20, 1, 0, 10, 5), 10);
  EXPECT_EQ(budget.iterations(20, 1, 4, 10, 5), 6) << "verification needs its part";
  EXPECT_EQ(budget.iterations(20, 100, 0, 10, 5), 1) << "never none";
}

TEST(Budget, StopsBeforeASizeThatCannotFinish) {
  Budget budget(60);
  EXPECT_TRUE(budget.admits(1 << 20, 0, 1)) << "the first always runs";
  budget.learn(1 << 20, 1.0, 0.5);
  EXPECT_TRUE(budget.admits(8 << 20, 20, 1)) << "8 s each for warm-up, timed, checked; 4 to verify";
  EXPECT_FALSE(budget.admits(8 << 20, 40, 1));
}

}  // namespace
}  // namespace ztcp::perf
