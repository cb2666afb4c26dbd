// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/memif_guard.h"

#include <mutex>
#include <sched.h>
#include <vector>

namespace ztcp::link {
namespace {

std::mutex g_mutex;  // Held while waiting: a guard must not be destroyed meanwhile.
std::vector<MemifGuard*>& guards() {
  static auto* list = new std::vector<MemifGuard*>;  // Outlives DPDK's thread.
  return *list;
}

}  // namespace

MemifGuard::MemifGuard() {
  const std::scoped_lock lock(g_mutex);
  guards().push_back(this);
}

MemifGuard::~MemifGuard() {
  const std::scoped_lock lock(g_mutex);
  std::erase(guards(), this);
}

void MemifGuard::wait_until_outside() {
  const std::scoped_lock lock(g_mutex);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const MemifGuard* guard : guards()) {
    const std::uint32_t turn = guard->turn_.load(std::memory_order_seq_cst);
    if (turn % 2 == 0) continue;
    while (guard->turn_.load(std::memory_order_acquire) == turn) sched_yield();
  }
}

}  // namespace ztcp::link
