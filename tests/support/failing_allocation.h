// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memory that ends (ulimit -v): lets one of this thread's allocations fail. Link
// failing_allocation_dep, in a program of its own; it replaces operator new, which sanitizers do,
// too.
//
//   for (std::size_t nth = 1;; ++nth) {
//     FailingAllocation failing(nth);
//     failing.during([&] { ... what must bear it ... });
//     if (!failing.has_failed()) break;  // It has been through all of them.
//   }
#pragma once

#include <cstddef>
#include <utility>

namespace ztcp::test {

class FailingAllocation {
 public:
  // The nth allocation of all that happen during() throws std::bad_alloc, and no other.
  explicit FailingAllocation(std::size_t nth) : left_(nth) {}
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  template <class Body>
  auto during(Body&& body) {
    const Armed armed(*this);
    return std::forward<Body>(body)();
  }
  bool has_failed() const { return left_ == 0; }

 private:
  class Armed {
   public:
    explicit Armed(FailingAllocation& of);
    ~Armed();
    Armed(const Armed&) = delete;
    Armed& operator=(const Armed&) = delete;

   private:
    FailingAllocation& of_;
  };

  std::size_t left_;
};

}  // namespace ztcp::test
