// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Lets other threads run while a loop has nothing to do. Any thread.
//
// sched_yield() alone is not safe to repeat: where threads yield to each other faster than the
// clock ticks, kernels like Linux 6.18 lose track of the average that the fair scheduler compares
// tasks with, and a thread that does not yield is not run for seconds. One of those is the thread
// that ends RCU's grace periods, and every process that enlarges its descriptor table waits for it:
// 64 ranks on two CPUs stood still in accept() until their peers timed out. A true sleep corrects
// the average, so a loop during whose yields others ran sleeps now and then. A loop that is alone
// on its CPU never sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace ztcp {

class Yielder {
 public:
  void yield();

  // Yields that let others run, for each sleep; a sleep takes at least the 50 us of timer slack.
  // One in 256 was enough for that job, one in 512 was not always.
  static constexpr std::uint32_t kYieldsPerSleep = 128;
  // A yield that took this long let another thread run: alone it takes 0.4 us, with one other 2.2
  // us.
  static constexpr Duration kSomebodyRan = std::chrono::microseconds(1);

  // To be called after a yield.
  bool must_sleep(Duration yield_took) {
    return yield_took >= kSomebodyRan &&
           (yields_.fetch_add(1, std::memory_order_relaxed) + 1) % kYieldsPerSleep == 0;
  }

 private:
  std::atomic<std::uint32_t> yields_{0};  // Yields that let others run.
};

}  // namespace ztcp
