// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/memif_guard.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

// The test plays DPDK's interrupt thread: it clears the flag, waits, and unmaps. The other thread
// runs bursts, whose load of the flag only the guard can order, as in the driver.
TEST(MemifGuard, NoBurstUsesRingsThatAreUnmapped) {
  constexpr int kConnections = 300;
  constexpr int kLoads = 500;  // Of the rings in a burst.
  constexpr std::uint32_t kMapped = 1;
  constexpr std::uint32_t kUnmapped = 2;
  MemifGuard guard;
  std::atomic<bool> is_connected{false};
  std::atomic<std::uint32_t> rings{kUnmapped};
  std::atomic<bool> ends{false};
  std::atomic<std::uint32_t> bursts{0};
  std::uint64_t used_unmapped = 0;
  std::thread poller([&] {
    while (!ends.load(std::memory_order_relaxed)) {
      {
        const MemifGuard::Burst burst(&guard);
        if (is_connected.load(std::memory_order_relaxed)) {
          std::atomic_thread_fence(std::memory_order_acquire);  // The rings of this connection.
          bursts.fetch_add(1, std::memory_order_relaxed);
          for (int i = 0; i < kLoads; ++i)
            used_unmapped += rings.load(std::memory_order_relaxed) == kUnmapped ? 1U : 0U;
          continue;
        }
      }
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < kConnections; ++i) {
    const std::uint32_t before = bursts.load(std::memory_order_relaxed);
    rings.store(kMapped, std::memory_order_relaxed);
    is_connected.store(true, std::memory_order_release);
    while (bursts.load(std::memory_order_relaxed) == before) std::this_thread::yield();
    is_connected.store(false, std::memory_order_relaxed);
    MemifGuard::wait_until_outside();
    rings.store(kUnmapped, std::memory_order_relaxed);
  }
  ends.store(true, std::memory_order_relaxed);
  poller.join();
  EXPECT_EQ(used_unmapped, 0U);
}

}  // namespace
}  // namespace ztcp::link
