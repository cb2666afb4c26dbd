// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Counts the heap allocations of this test program while armed, to assert that the steady state
// does not allocate. Link allocation_guard_dep; it replaces operator new and delete and, outside
// sanitizer builds (which have replaced them already), malloc, calloc, realloc and aligned_alloc.
//
//   AllocationGuard guard;
//   ... steady state ...
//   EXPECT_EQ(guard.count(), 0U);
//
// It counts every thread. GoogleTest's own bookkeeping allocates: keep EXPECTs out of the guarded
// part.
#pragma once

#include <cstddef>

namespace ztcp {

class AllocationGuard {
 public:
  AllocationGuard() noexcept;  // Arms. Guards don't nest.
  ~AllocationGuard();
  AllocationGuard(const AllocationGuard&) = delete;
  AllocationGuard& operator=(const AllocationGuard&) = delete;

  // Disarms; returns the allocations and deallocations since construction.
  std::size_t count() noexcept;
};

}  // namespace ztcp
