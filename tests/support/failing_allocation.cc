// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/failing_allocation.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace {

// Counts down to the allocation of this thread that fails; 0: none.
thread_local std::size_t fails_at = 0;

}  // namespace

// Not inline: GCC would warn that memory from one of these operators goes to free().
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (fails_at != 0 && --fails_at == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* pointer) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  if (fails_at != 0 && --fails_at == 0) throw std::bad_alloc();
  const auto to = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(to, (size + to - 1) / to * to)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* pointer, std::align_val_t) noexcept {
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept {
  std::free(pointer);
}

namespace ztcp::test {

FailingAllocation::Armed::Armed(FailingAllocation& of) : of_(of) { fails_at = of.left_; }
FailingAllocation::Armed::~Armed() { of_.left_ = std::exchange(fails_at, 0); }

}  // namespace ztcp::test
