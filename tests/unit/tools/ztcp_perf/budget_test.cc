// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/budget.h"

#include <gtest/gtest.h>

namespace ztcp::perf {
namespace {

// Iterations of a size that asks until it is told to stop; iteration number i takes took(i).
template <class Took>
int run_size(const Budget& budget, int wanted, double estimate_s, double overhead_s, double& now_s,
             Took took) {
  int done = 0;
  double iteration_s = estimate_s;
  while (const int next = budget.next_iterations(wanted, done, iteration_s, overhead_s, now_s)) {
    const double begin_s = now_s;
    for (int i = 0; i < next; ++i) now_s += took(done + i);
    iteration_s = (now_s - begin_s) / next;
    done += next;
  }
  return done;
}

TEST(Budget, WithoutALimitAllIterationsRun) {
  Budget budget(0);
  budget.begin_size(0, 1);
  EXPECT_EQ(budget.next_iterations(20, 0, 1000, 0, 0), 20);
  EXPECT_EQ(budget.next_iterations(20, 20, 1000, 0, 0), 0);
  EXPECT_TRUE(budget.affords_warmup(1e9));
  EXPECT_TRUE(budget.admits(1U << 30U, 1e9, 1));
}

TEST(Budget, DividesTheRestAmongTheRemainingSizes) {
  Budget budget(60);
  const auto count = [&](double iteration_s, double overhead_s) {
    budget.begin_size(10, 5);
    double now_s = 10;
    return run_size(budget, 20, iteration_s, overhead_s, now_s, [&](int) { return iteration_s; });
  };
  EXPECT_EQ(count(0.001, 0), 20) << "10 s for 20 ms";
  EXPECT_EQ(count(1, 0), 10);
  EXPECT_EQ(count(1, 4), 6) << "verification needs its part";
  EXPECT_EQ(count(100, 0), 1) << "never none";
}

TEST(Budget, ASlowFirstIterationDoesNotLimitTheOthers) {
  Budget budget(10);
  budget.begin_size(0, 1);
  double now_s = 5;  // The only warm-up iteration took half of the share.
  EXPECT_EQ(run_size(budget, 1500, 5, 0, now_s, [](int) { return 0.001; }), 1500);
  now_s = 5;
  EXPECT_EQ(run_size(budget, 1500, 5, 0, now_s, [](int i) { return i == 0 ? 1.0 : 0.001; }), 1500);
}

TEST(Budget, IterationsThatBecomeSlowerKeepToTheShare) {
  Budget budget(10);
  budget.begin_size(0, 1);
  double now_s = 0;
  const int count =
      run_size(budget, 1'000'000, 0.001, 0, now_s, [](int i) { return i < 4000 ? 0.001 : 0.002; });
  EXPECT_GT(count, 6000);
  EXPECT_LT(now_s, 10.1);
}

TEST(Budget, WarmUpTakesAQuarterOfTheShare) {
  Budget budget(60);
  budget.begin_size(20, 2);
  EXPECT_TRUE(budget.affords_warmup(24.9));
  EXPECT_FALSE(budget.affords_warmup(25.1));
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
