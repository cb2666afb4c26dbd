// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/fork_guard.h"

#include <atomic>
#include <sys/mman.h>
#include <unistd.h>

namespace ztcp::ustack {
namespace {

// Null until armed. Never unmapped: a child may ask at any time.
std::atomic<std::atomic<unsigned char>*> g_mark{nullptr};

}  // namespace

void arm_fork_guard() {
  if (g_mark.load(std::memory_order_acquire) != nullptr) return;
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page =
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  // Linux 4.14 and newer. Without it children are not told apart, which only loses a nicer error.
  if (madvise(page, page_bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, page_bytes);
    return;
  }
  auto* mark = new (page) std::atomic<unsigned char>(1);
  std::atomic<unsigned char>* none = nullptr;
  if (!g_mark.compare_exchange_strong(none, mark, std::memory_order_acq_rel)) {
    munmap(page, page_bytes);
  }
}

bool in_forked_child() {
  const auto* mark = g_mark.load(std::memory_order_relaxed);
  return mark != nullptr && mark->load(std::memory_order_relaxed) == 0;
}

}  // namespace ztcp::ustack
