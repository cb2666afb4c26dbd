// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/worker_threads.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <pthread.h>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

using namespace std::chrono_literals;

struct Job {
  std::uint64_t number = 0;
};

class WorkerThreadsTest : public testing::Test {
 protected:
  using Ring = JobRing<Job, 64>;
  void start(std::size_t count, Duration spin) {
    rings.resize(count);
    const WorkerThreads::Options options{.name = "test-w", .cpus = {}, .spin = spin};
    ASSERT_TRUE(workers.start(count, options, [this](std::size_t worker) {
      return rings[worker].work([this, worker](Job& job) {
        sum.fetch_add(job.number);
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        if (sigismember(&blocked, SIGTERM) == 0 || sigismember(&blocked, SIGUSR1) == 0)
          all_blocked.store(false);
        char name[16];
        pthread_getname_np(pthread_self(), name, sizeof name);
        if (name != "test-w" + std::to_string(worker)) names_differ.store(true);
      });
    }));
    EXPECT_EQ(workers.count(), count);
  }
  void give(std::size_t worker, std::uint64_t number) {
    rings[worker].put({number});
    if (rings[worker].publish()) workers.wake(worker);
  }
  void wait(std::size_t worker) {
    while (!rings[worker].is_done(rings[worker].position())) ASSERT_TRUE(workers.wait_for(worker));
    rings[worker].reap([](const Job&) {});
    while (rings[worker].first_done() != nullptr) rings[worker].take_first();
  }

  std::deque<Ring> rings;
  std::atomic<std::uint64_t> sum{0};
  std::atomic<bool> all_blocked{true};
  std::atomic<bool> names_differ{false};
  WorkerThreads workers;  // Ends before the rings.
};

// With no time to look for work each job finds its worker asleep, or about to fall asleep.
TEST_F(WorkerThreadsTest, SleepingWorkersAreWokenForEachJob) {
  start(2, Duration::zero());
  std::uint64_t given = 0;
  for (std::uint64_t i = 1; i <= 3000; ++i) {
    give(i % 2, i);
    given += i;
    if (i % 3 == 0) wait(i % 2);
    if (rings[i % 2].room() == 0) wait(i % 2);
  }
  wait(0);
  wait(1);
  EXPECT_EQ(sum.load(), given);
  EXPECT_TRUE(all_blocked.load()) << "no handler of the host runs on them";
}

TEST_F(WorkerThreadsTest, AreNamed) {
  start(3, 1ms);
  // The starting thread sets the name.
  for (std::size_t worker = 0; worker < 3; ++worker) {
    names_differ.store(true);
    while (names_differ.load()) {
      names_differ.store(false);
      give(worker, 1);
      wait(worker);
    }
  }
}

TEST_F(WorkerThreadsTest, DoAllJobsBeforeTheyEnd) {
  start(3, 10us);
  for (std::uint64_t i = 0; i < 150; ++i) give(i % 3, 1);
  workers.stop();
  EXPECT_EQ(sum.load(), 150U);
  workers.stop();
}

TEST_F(WorkerThreadsTest, WaitingEndsAtTheLimit) {
  start(1, Duration::zero());
  rings[0].put({1});  // The worker is not woken for it.
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  workers.set_wait_deadline(TimePoint(now + 5ms));
  std::uint64_t waits = 0;
  while (workers.wait_for(0)) ++waits;
  EXPECT_GT(waits, 0U);
  EXPECT_GE(std::chrono::steady_clock::now().time_since_epoch(), now + 5ms);
}

TEST(WorkerThreads, ZeroWorkersCanBeStartedAndStopped) {
  WorkerThreads workers;
  EXPECT_EQ(workers.count(), 0U);
  workers.stop();
}

}  // namespace
}  // namespace ztcp
