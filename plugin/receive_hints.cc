// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/receive_hints.h"

#include <atomic>

namespace ztcp::plugin {
namespace {

std::atomic<bool> g_are_on{true};

}  // namespace

void remember_receive_hints(bool are_on) noexcept {
  g_are_on.store(are_on, std::memory_order_relaxed);
}

bool receive_hints_are_on() noexcept { return g_are_on.load(std::memory_order_relaxed); }

}  // namespace ztcp::plugin
