// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/process_page.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace ztcp::stats {
namespace {

// Never destroyed: threads may run while the process ends.
struct Current {
  std::mutex mutex;
  std::shared_ptr<Page> page;
};
Current& current() {
  static auto* instance = new Current;
  return *instance;
}
std::atomic<Page*> g_page{nullptr};

}  // namespace

void set_process_page(std::shared_ptr<Page> page) {
  const std::scoped_lock lock(current().mutex);
  g_page.store(page.get());
  current().page.swap(page);
}

std::shared_ptr<Page> process_page() {
  // In a forked child the mutex may be locked for ever.
  const Page* const page = g_page.load();
  if (page == nullptr || !page->is_own()) return nullptr;
  const std::scoped_lock lock(current().mutex);
  return current().page;
}

void end_process_page() noexcept {
  if (Page* const page = g_page.load()) page->end_cleanly();
}

}  // namespace ztcp::stats
