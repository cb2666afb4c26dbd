// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a loop that has nothing to do lets others have its CPU. Any thread.
//
// sched_yield() alone is not safe to repeat: where threads yield to each other faster than the
// clock ticks, kernels like Linux 6.18 lose track of the average that the fair scheduler compares
// everybody with, and who does not yield is not run for seconds. Among those is the thread that
// ends RCU's grace periods, and with it waits every process that makes its table of descriptors
// larger: 64 ranks on two CPUs stood still in accept() until their peers gave up. A true sleep puts
// the average right, so whoever sees that others ran meanwhile sleeps now and then. Alone on its
// CPU a loop never does.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/core/clock.h"

namespace ztcp {

class Yielder {
 public:
  void yield();

  // One sleep, of the 50 us that a timer is late at least, in so many yields that let others run.
  // With one in 256 the job above ran, with one in 512 it stood still now and then.
  static constexpr std::uint32_t kYieldsPerSleep = 128;
  // A yield that took so long let somebody run: 0.4 us it takes alone, 2.2 us with one other.
  static constexpr Duration kSomebodyRan = std::chrono::microseconds(1);

  // After a yield.
  bool must_sleep(Duration yield_took) {
    return yield_took >= kSomebodyRan &&
           (yields_.fetch_add(1, std::memory_order_relaxed) + 1) % kYieldsPerSleep == 0;
  }

 private:
  std::atomic<std::uint32_t> yields_{0};  // Of those that let others run.
};

}  // namespace ztcp
