// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/process_mark.h"

#include <atomic>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace ztcp {
namespace {

// The owner's pid; 0 before the mark. Children inherit it.
std::atomic<pid_t> g_owner{0};
// A page that reads as zero in every child, also after a raw clone(), which runs no fork handlers.
// Holds the owner's pid in the owner, and is never unmapped. nullptr: the kernel can't wipe pages,
// so getpid() is called instead.
std::atomic<const std::atomic<pid_t>*> g_wiped_on_fork{nullptr};

const std::atomic<pid_t>* make_wiped_page(pid_t owner) noexcept {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    munmap(page, size);
    return nullptr;
  }
  return new (page) std::atomic<pid_t>(owner);
}

}  // namespace

void mark_process() noexcept {
  static std::mutex mutex;
  if (g_owner.load(std::memory_order_acquire) != 0) return;
  const std::lock_guard lock(mutex);
  if (g_owner.load(std::memory_order_acquire) != 0) return;
  const pid_t self = getpid();
  g_wiped_on_fork.store(make_wiped_page(self), std::memory_order_release);
  g_owner.store(self, std::memory_order_release);
}

bool in_forked_child() noexcept {
  const pid_t owner = g_owner.load(std::memory_order_acquire);
  if (owner == 0) return false;
  if (const auto* page = g_wiped_on_fork.load(std::memory_order_relaxed))
    return page->load(std::memory_order_relaxed) != owner;
  return getpid() != owner;
}

bool owns_process() noexcept {
  return g_owner.load(std::memory_order_acquire) != 0 && !in_forked_child();
}

}  // namespace ztcp
