// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Passes over the elements of a segment, cut into tasks that workers and the progress thread do.
// A task's elements are its own, and the order of the sources is the pass's, so the result does not
// depend on which thread does which task.
//
// Threads: one gives passes and collects them; work() and settle() are for any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/job_ring.h"
#include "core/task_queue.h"
#include "transport/reduce/element.h"

namespace ztcp::reduce {

struct Pass {
  enum class Kind : std::uint8_t {
    kCombine,  // to = the reduction of sources.
    // The rest with a rounding `form`, which `wire` and, in sums, `sources` have.
    kNarrow,      // wire = values.
    kWiden,       // to = wire.
    kSum,         // to = the sum of sources.
    kSumRounded,  // wire = the sum of sources and `values`; to = wire.
  };
  Kind kind{};
  Wire form{};
  ElementType type{};  // The type of values and `to`; with kCombine also of sources.
  Reduction reduction{};
  std::uint32_t owner = 0;  // The giver's number for it.
  std::byte* to = nullptr;
  std::byte* wire = nullptr;  // kSumRounded: one of the sources, for this host's `values`.
  const std::byte* values = nullptr;
  const std::byte* const* sources = nullptr;
  std::size_t source_count = 0;
  Range elements;
};

void do_pass(const Pass& pass);

class Passes {
 public:
  // So small that several threads share a message's elements, and so large that taking a task costs
  // nothing beside it.
  static constexpr std::size_t kTaskElements = 16U << 10;
  // A worker is woken for as many waiting tasks as this.
  static constexpr std::size_t kTasksOfWaking = 4;

  // Null: the giver does all. `workers` call work().
  explicit Passes(Workers* workers) : workers_(workers) {}
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  // Does a small pass, and without workers any, at once. Returns the number of tasks that collect()
  // will show.
  std::uint32_t give(Pass pass);
  // Wakes workers for the tasks that were given.
  void publish();
  // Calls visit(owner) for each task that was done. False: there was none.
  template <class Visit>
  bool collect(Visit&& visit) {
    return queue_.take_back([&](const Pass& task) { visit(task.owner); });
  }

  // Does a task; false: there is none.
  bool work() { return queue_.work(do_pass); }
  // Returns once no thread uses memory of the passes given so far.
  void settle() { queue_.finish(do_pass); }

 private:
  static constexpr std::size_t kMaxTasks = 512;

  Workers* const workers_;
  TaskQueue<Pass, kMaxTasks> queue_;
};

}  // namespace ztcp::reduce
