// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Synchronises bursts with the loss of a memif peer. DPDK notices a dead peer on its interrupt
// thread and unmaps the rings at once, even if a poller is copying into them; a rank that dies
// would crash its neighbours. The driver's call of memif_free_regions() is therefore routed through
// dpdk_host.cc: the unmapping first waits until no link is inside a burst. The driver has cleared
// its "connected" flag by then, so the next burst finds the port down.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/memory_order.h"

namespace ztcp::link {

// One per link. Bursts run on the link's thread, wait_until_outside() on DPDK's.
class MemifGuard {
 public:
  MemifGuard();
  ~MemifGuard();
  MemifGuard(const MemifGuard&) = delete;
  MemifGuard& operator=(const MemifGuard&) = delete;

  // Held around each burst on a memif port; `guard` is null for other ports.
  class Burst {
   public:
    explicit Burst(MemifGuard* guard) : guard_(guard) {
      if (guard_ == nullptr) return;
      // Odd means inside. Sequentially consistent, so that either the waiter sees it odd or the
      // burst sees the flag that the driver cleared before the wait.
      guard_->turn_.fetch_add(1, std::memory_order_seq_cst);
      fence_after_exchange();  // The flag is no atomic.
    }
    ~Burst() {
      if (guard_ != nullptr) guard_->turn_.fetch_add(1, std::memory_order_release);
    }
    Burst(const Burst&) = delete;
    Burst& operator=(const Burst&) = delete;

   private:
    MemifGuard* guard_;
  };

  // Returns once every link has been outside a burst at least once since the call.
  static void wait_until_outside();

 private:
  std::atomic<std::uint32_t> turn_{0};
};

}  // namespace ztcp::link
