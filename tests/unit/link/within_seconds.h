// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <chrono>
#include <thread>

namespace ztcp::link::test {

// Limits a wait for the kernel, another thread or process; a test never depends on its duration.
template <class Condition>
bool within_seconds(int seconds, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace ztcp::link::test
