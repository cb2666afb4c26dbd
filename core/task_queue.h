// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A queue of tasks from one thread to any number of threads, the giver among them. Whichever thread
// is free takes the oldest task. A task keeps its slot until the giver takes it back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cpu_pause.h"
#include "core/yielder.h"

namespace ztcp {

template <class Task, std::size_t kSlots>
class TaskQueue {
 public:
  static_assert((kSlots & (kSlots - 1)) == 0, "positions wrap");

  // --- The giver ---------------------------------------------------------------------------------
  bool has_room() const { return put_ - taken_back_ < kSlots; }
  // Requires has_room(). Sequentially consistent, like a worker's last check before it sleeps: at
  // least one of the two sees the other's store.
  void give(const Task& task) {
    slots_[put_ % kSlots].task = task;
    given_.store(++put_, std::memory_order_seq_cst);
  }
  // Tasks that no thread has begun.
  std::size_t waiting() const { return put_ - begun_.load(std::memory_order_relaxed); }
  // Calls visit(task) for each finished task, in the order in which they were given. False: there
  // was none.
  template <class Visit>
  bool take_back(Visit&& visit) {
    const std::uint64_t before = taken_back_;
    for (; taken_back_ != put_ && is_done(taken_back_); ++taken_back_)
      visit(slots_[taken_back_ % kSlots].task);
    return taken_back_ != before;
  }

  // --- Any thread --------------------------------------------------------------------------------
  //
  // Does the oldest task that no thread has begun: do_it(task). False: there is none.
  template <class DoIt>
  bool work(DoIt&& do_it) {
    std::uint64_t number = begun_.load(std::memory_order_relaxed);
    do {
      if (number >= given_.load(std::memory_order_seq_cst)) return false;
    } while (!begun_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
    Slot& slot = slots_[number % kSlots];
    do_it(static_cast<const Task&>(slot.task));
    slot.done.store(number + 1, std::memory_order_release);
    return true;
  }
  // Returns once all tasks given before the call are done. Does its share of them.
  template <class DoIt>
  void finish(DoIt&& do_it) {
    constexpr std::uint32_t kPauses = 64;
    const std::uint64_t end = given_.load(std::memory_order_seq_cst);
    Yielder yielder;
    std::uint32_t pauses = 0;
    for (std::uint64_t number = end - (end < kSlots ? end : kSlots); number != end;) {
      if (is_done(number))
        ++number;
      else if (work(do_it))
        continue;
      else if (++pauses % kPauses == 0)
        yielder.yield();
      else
        cpu_pause();
    }
  }

 private:
  struct alignas(64) Slot {
    Task task{};
    std::atomic<std::uint64_t> done{0};  // Behind the number of the last task done here.
  };

  bool is_done(std::uint64_t number) const {
    return slots_[number % kSlots].done.load(std::memory_order_acquire) > number;
  }

  std::array<Slot, kSlots> slots_{};
  // Numbers of tasks, in order: taken back, begun, given.
  alignas(64) std::atomic<std::uint64_t> given_{0};
  alignas(64) std::atomic<std::uint64_t> begun_{0};
  // Used by the giver.
  alignas(64) std::uint64_t put_ = 0;
  std::uint64_t taken_back_ = 0;
};

}  // namespace ztcp
