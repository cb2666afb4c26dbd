// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/allocation_guard.h"

#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(AllocationGuard, SeesNewAndDelete) {
  AllocationGuard guard;
  {
    std::vector<int> grows;
    grows.resize(100);
    asm volatile("" ::"r"(grows.data()) : "memory");
  }
  EXPECT_EQ(guard.count(), 2U);
}

TEST(AllocationGuard, CountsNothingInEmptyScope) {
  std::vector<int> sized(100);
  AllocationGuard guard;
  sized[3] = 4;
  asm volatile("" ::"r"(sized.data()) : "memory");
  EXPECT_EQ(guard.count(), 0U);
}

TEST(AllocationGuard, CountDisarms) {
  AllocationGuard guard;
  EXPECT_EQ(guard.count(), 0U);
  void* memory = std::malloc(64);
  asm volatile("" ::"r"(memory) : "memory");
  std::free(memory);
  EXPECT_EQ(guard.count(), 0U);
}

}  // namespace
}  // namespace ztcp
