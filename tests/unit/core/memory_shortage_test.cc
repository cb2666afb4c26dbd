// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Starts threads without memory for them.
#include <csignal>
#include <cstddef>
#include <pthread.h>

#include <gtest/gtest.h>

#include "core/worker_threads.h"
#include "tests/support/failing_allocation.h"

namespace ztcp {
namespace {

bool takes_signals() {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, SIGTERM) == 0;
}

TEST(WorkerThreadsTest, AMemoryShortageCostsWorkersAndKeepsTheCallersSignals) {
  std::size_t short_of_some = 0;
  for (std::size_t nth = 1;; ++nth) {
    WorkerThreads workers;
    test::FailingAllocation failing(nth);
    const Status started = failing.during([&] {
      return workers.start(3, {.name = "test-w", .cpus = {}, .spin = {}},
                           [](std::size_t) { return false; });
    });
    ASSERT_TRUE(takes_signals());
    if (!failing.has_failed()) {
      EXPECT_TRUE(started);
      EXPECT_EQ(workers.count(), 3U);
      break;
    }
    ++short_of_some;
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Errc::kOutOfMemory);
    EXPECT_LT(workers.count(), 3U);
  }
  EXPECT_GE(short_of_some, 3U) << "what each thread begins with";
}

}  // namespace
}  // namespace ztcp
