// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Makes one of this thread's allocations fail, as a memory limit (ulimit -v) does. Link
// failing_allocation_dep, in a program of its own: it replaces operator new, and so do sanitizers.
//
//   for (std::size_t nth = 1;; ++nth) {
//     FailingAllocation failing(nth);
//     failing.during([&] { ... code that must survive the failure ... });
//     if (!failing.has_failed()) break;  // Every allocation has failed once.
//   }
#pragma once

#include <cstddef>
#include <utility>

namespace ztcp::test {

class FailingAllocation {
 public:
  // Only the nth allocation inside the calls of during() throws std::bad_alloc.
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
