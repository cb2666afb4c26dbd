// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Orders that std::atomic can't express, because one side is no atomic of ours: a driver's plain
// variable, or memory that a device writes. On x86 they cost nothing.
#pragma once

#include <atomic>

namespace ztcp {

// After a sequentially consistent read-modify-write: later plain loads come after its store. On x86
// its locked instruction is such a fence; on Arm a later load may overtake the store.
inline void fence_after_exchange() noexcept {
#if defined(__aarch64__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// After a load of a word that a device has written last: later loads see what it wrote before.
inline void order_device_reads() noexcept {
#if defined(__aarch64__)
  asm volatile("dmb oshld" ::: "memory");
#else
  std::atomic_signal_fence(std::memory_order_acquire);
#endif
}

}  // namespace ztcp
