// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/look/window.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

TEST(Window, CountsTheGrowthBetweenTheLooks) {
  Looks looks;
  looks.then().lanes[0].counters[Counter::kSentBytes] = 1000;
  looks.counter(Counter::kSentBytes) = 5000;
  const Window window = window_of(looks.after.pages[0], &looks.before, looks.after);
  EXPECT_TRUE(window.has_before());
  EXPECT_DOUBLE_EQ(window.seconds(), 1);
  EXPECT_EQ(window.count(Counter::kSentBytes), 4000u);
  EXPECT_EQ(window.count(looks.now().devices[0], Counter::kSentBytes), 4000u);
  EXPECT_DOUBLE_EQ(window.rate(Counter::kSentBytes), 4000);
}

TEST(Window, RatesUseTheTimeBetweenTheLanesRefreshes) {
  Looks looks;
  looks.counter(Counter::kSentBytes) = 4000;
  looks.now().lanes[0].updated_monotonic_ns = kUpNs + kSecondNs / 2;
  const Window window = window_of(looks.after.pages[0], &looks.before, looks.after);
  EXPECT_DOUBLE_EQ(window.rate(Counter::kSentBytes), 8000);
}

TEST(Window, ProcessThatBeganBetweenTheLooksCountsFromItsStart) {
  Looks looks;
  looks.counter(Counter::kSentBytes) = 7200;
  looks.now().process.started_realtime_ns = kStartNs + 1;
  looks.now().process.updated_realtime_ns = kStartNs + 1 + 2 * kSecondNs;
  const Window window = window_of(looks.after.pages[0], &looks.before, looks.after);
  EXPECT_FALSE(window.has_before());
  EXPECT_DOUBLE_EQ(window.seconds(), 2);
  EXPECT_DOUBLE_EQ(window.rate(Counter::kSentBytes), 3600);
}

TEST(Window, ProgressOfAConnectionIsItsGrowth) {
  Looks looks;
  looks.now().connections[0].messages += 7;
  const Window window = window_of(looks.after.pages[0], &looks.before, looks.after);
  const Progress progress = window.progress(looks.now().connections[0]);
  EXPECT_EQ(progress.bytes, 100'000'000u);
  EXPECT_EQ(progress.messages, 7u);
  EXPECT_DOUBLE_EQ(progress.bytes_per_second(), 1e8);
}

TEST(Window, CounterOfAReusedEntryCountsFromZero) {
  EXPECT_EQ(growth(5, 3), 2u);
  EXPECT_EQ(growth(3, 5), 3u);
}

TEST(Window, LatenciesAreThoseSinceTheEarlierLook) {
  Looks looks;
  stats::Latency latency;
  latency.peer = "10.0.0.2";
  latency.by_class[1][10] = 4;
  looks.then().latencies.push_back(latency);
  latency.by_class[1][10] = 9;
  latency.by_class[1][11] = 1;
  looks.now().latencies.push_back(latency);
  const Window window = window_of(looks.after.pages[0], &looks.before, looks.after);
  const auto counts = window.counts(looks.now().latencies[0]);
  EXPECT_EQ(counts[1][10], 5u);
  EXPECT_EQ(counts[1][11], 1u);
}

}  // namespace
}  // namespace ztcp::stat
