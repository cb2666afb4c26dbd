// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/timer_wheel.h"

#include <chrono>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

class Wheel : public testing::Test {
 protected:
  std::vector<std::uint32_t> advance(TimePoint to) {
    std::vector<std::uint32_t> fired;
    wheel.advance(to, [&](std::uint32_t node) { fired.push_back(node); });
    return fired;
  }
  using Nodes = std::vector<std::uint32_t>;
  TimerWheel wheel{64};
  TimePoint start{1h};
};

TEST_F(Wheel, FiresNeverEarlyAndAtMostATickLate) {
  advance(start);
  for (const Duration delay : {Duration(1us), Duration(100us), Duration(5ms), Duration(2s),
                               Duration(1h), Duration(24h * 400)}) {
    wheel.schedule(3, start + delay);
    // The path leads through coarser levels.
    TimePoint next = wheel.next_deadline();
    while (next < start + delay) {
      EXPECT_EQ(advance(next), Nodes{}) << delay.count();
      ASSERT_GT(wheel.next_deadline(), next);
      next = wheel.next_deadline();
    }
    EXPECT_LE(next, start + delay + 33us);
    EXPECT_EQ(advance(next), Nodes{3}) << delay.count();
    EXPECT_EQ(wheel.next_deadline(), kNever);
    start = next;
  }
}

TEST_F(Wheel, MovesEarlierButNeverLater) {
  advance(start);
  wheel.schedule(1, start + 10ms);
  wheel.schedule(1, start + 20ms);
  EXPECT_EQ(advance(start + 11ms), Nodes{1});
  wheel.schedule(1, start + 90ms);
  wheel.schedule(1, start + 30ms);
  EXPECT_EQ(advance(start + 31ms), Nodes{1});
  EXPECT_EQ(advance(start + 1s), Nodes{});
}

TEST_F(Wheel, CancelledNodesStaySilent) {
  wheel.schedule(1, start + 1ms);
  wheel.schedule(2, start + 1ms);
  wheel.cancel(1);
  wheel.cancel(7);
  EXPECT_EQ(advance(start + 2ms), Nodes{2});
}

TEST_F(Wheel, NodeMayCancelAndScheduleOthersFromItsCall) {
  advance(start);
  for (std::uint32_t i = 0; i < 4; ++i) wheel.schedule(i, start + 1ms);
  std::vector<std::uint32_t> fired;
  wheel.advance(start + 2ms, [&](std::uint32_t node) {
    fired.push_back(node);
    for (std::uint32_t i = 0; i < 4; ++i) wheel.cancel(i);
    wheel.schedule(9, start);  // Overdue: the next turn.
  });
  EXPECT_EQ(fired.size(), 1U);
  EXPECT_EQ(advance(start + 3ms), Nodes{9});
}

// A node that always reschedules itself can't spin, however long the gap since the last turn was.
TEST_F(Wheel, OverdueNodeFiresOncePerTurn) {
  advance(start);
  wheel.schedule(5, start - 1s);
  int fired = 0;
  const auto again = [&](std::uint32_t node) {
    ++fired;
    wheel.schedule(node, start - 1s);
  };
  wheel.advance(start + 10s, again);
  EXPECT_EQ(fired, 1);
  wheel.advance(start + 10s + 40us, again);
  EXPECT_EQ(fired, 2);
}

TEST_F(Wheel, RandomDeadlinesFireInTheirTick) {
  std::mt19937_64 random(9);
  std::vector<TimePoint> due(64, kNever);
  TimePoint now = start;
  advance(now);
  for (int step = 0; step < 20'000; ++step) {
    const auto node = static_cast<std::uint32_t>(random() % 64);
    const TimePoint at = now + Duration(random() % (1ULL << (10 + random() % 30)));
    wheel.schedule(node, at);
    due[node] = std::min(due[node], at);
    if (step % 3 != 0) continue;
    now += Duration(random() % 3'000'000);
    wheel.advance(now, [&](std::uint32_t fired) {
      ASSERT_LE(due[fired], now);
      due[fired] = kNever;
    });
    for (const TimePoint d : due) ASSERT_GT(d, now - 33us);
  }
}

}  // namespace
}  // namespace ztcp::tcp
