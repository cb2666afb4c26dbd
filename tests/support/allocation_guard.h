// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Counts heap allocations of this test program while armed: "the steady state does not allocate"
// as a test. Link allocation_guard_dep; it replaces operator new and delete and, outside sanitizer
// builds (which have replaced them already), malloc, calloc, realloc and aligned_alloc.
//
//   AllocationGuard guard;
//   ... steady state ...
//   EXPECT_EQ(guard.count(), 0U);
//
// Counts every thread. GoogleTest's own bookkeeping allocates: keep EXPECTs out of the guarded
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

  // Allocations and deallocations since construction; disarms.
  std::size_t count() noexcept;
};

}  // namespace ztcp
