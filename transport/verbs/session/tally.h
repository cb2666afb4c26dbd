// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A number that one thread at a time changes and any thread may read, for the statistics page. It
// costs its writer no more than a plain number.
#pragma once

#include <cstdint>

namespace ztcp::verbs {

class Tally {
 public:
  std::uint64_t value() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
  void set(std::uint64_t value) { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }
  void add(std::uint64_t amount = 1) { set(value() + amount); }
  void subtract(std::uint64_t amount) { set(value() - amount); }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace ztcp::verbs
