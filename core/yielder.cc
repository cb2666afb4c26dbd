// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/yielder.h"

#include <ctime>
#include <sched.h>

namespace ztcp {

void Yielder::yield() {
  const auto before = std::chrono::steady_clock::now();
  sched_yield();
  if (!must_sleep(std::chrono::steady_clock::now() - before)) return;
  const timespec shortest{.tv_sec = 0, .tv_nsec = 1};
  nanosleep(&shortest, nullptr);
}

}  // namespace ztcp
