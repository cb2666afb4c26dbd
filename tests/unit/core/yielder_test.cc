// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/yielder.h"

#include <atomic>
#include <chrono>
#include <sched.h>
#include <sys/resource.h>
#include <thread>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(Yielder, SleepsOncePer128YieldsThatLetOthersRun) {
  Yielder yielder;
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 1; i < Yielder::kYieldsPerSleep; ++i)
      ASSERT_FALSE(yielder.must_sleep(Yielder::kSomebodyRan)) << i;
    EXPECT_TRUE(yielder.must_sleep(Yielder::kSomebodyRan));
  }
}

TEST(Yielder, NeverSleepsAloneOnItsCpu) {
  Yielder yielder;
  for (std::uint32_t i = 0; i < 4 * Yielder::kYieldsPerSleep; ++i)
    ASSERT_FALSE(yielder.must_sleep(Yielder::kSomebodyRan - Duration(1)));
}

// A yielding thread goes to the end of its queue without leaving it: only a sleep is a voluntary
// switch.
long sleeps_of_this_thread() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  EXPECT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(Yielder, TwoThreadsOfOneCpuSleepNowAndThen) {
  const int cpu = sched_getcpu();
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    stay_on(cpu);
    Yielder yielder;
    while (!is_over.load()) yielder.yield();
  });
  std::thread one([&] {
    stay_on(cpu);
    Yielder yielder;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const long before = sleeps_of_this_thread();
    while (sleeps_of_this_thread() < before + 10 && std::chrono::steady_clock::now() < deadline)
      yielder.yield();
    EXPECT_GE(sleeps_of_this_thread(), before + 10);
    is_over = true;
  });
  one.join();
  other.join();
}

}  // namespace
}  // namespace ztcp
