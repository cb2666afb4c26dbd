// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A ring of jobs between two threads: the giver puts jobs, the worker does them, and the giver
// takes them back. Three positions in order: the next slot to put, the jobs done, the jobs taken
// back. A job stays in its slot all the while, so the worker answers by writing into the job.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ztcp {

// The threads that do the jobs, as the giver sees them: real threads in the product, virtual time
// in the simulator. Each has a number and a ring of its own.
class Workers {
 public:
  // May shrink until the first job is given, not after.
  virtual std::size_t count() const = 0;
  // Called after jobs were given to the worker, which may be asleep.
  virtual void wake(std::size_t worker) = 0;
  // Called repeatedly while the giver can't go on before the worker has done a job. False: go on
  // without it; the process ends, and neither the worker nor its jobs may ever run again.
  virtual bool wait_for(std::size_t worker) = 0;

 protected:
  ~Workers() = default;
};

// `kSlots` is a power of two. The worker sees a job that was put once it is published.
template <class Job, std::uint32_t kSlots>
class JobRing {
 public:
  static_assert((kSlots & (kSlots - 1)) == 0, "positions wrap");

  // --- The giver ---------------------------------------------------------------------------------
  std::uint32_t room() const { return kSlots - (put_ - taken_); }
  bool is_empty() const { return put_ == taken_; }
  void put(const Job& job) { slots_[put_++ % kSlots] = job; }
  // False: there was nothing new. Sequentially consistent, like the worker's last check before it
  // sleeps: at least one of the two sees the other's store.
  bool publish() {
    if (published_ == put_) return false;
    published_ = put_;
    given_.store(put_, std::memory_order_seq_cst);
    return true;
  }
  // Learns which jobs are done, and calls visit(job) for each that was not known to be done. Asking
  // costs both threads more than a small job does, so ask for many jobs at once.
  template <class Visit>
  void reap(Visit&& visit) {
    const std::uint32_t done = done_.load(std::memory_order_acquire);
    for (; known_done_ != done; ++known_done_) visit(slots_[known_done_ % kSlots]);
  }
  // The oldest job, if it is known to be done; else null.
  Job* first_done() { return known_done_ == taken_ ? nullptr : &slots_[taken_ % kSlots]; }
  void take_first() { ++taken_; }
  // position(): of the next job to be put. is_done(): all jobs before `position` are done.
  std::uint32_t position() const { return put_; }
  bool is_done(std::uint32_t position) const {
    return static_cast<std::int32_t>(done_.load(std::memory_order_acquire) - position) >= 0;
  }
  // Calls visit(job) for each job that was put and not taken back.
  template <class Visit>
  void for_each_out(Visit&& visit) {
    for (std::uint32_t at = taken_; at != put_; ++at) visit(slots_[at % kSlots]);
  }

  // --- The worker --------------------------------------------------------------------------------
  //
  // Does the next job, if there is one: do_it(job).
  template <class DoIt>
  bool work(DoIt&& do_it) {
    if (seen_ == next_) {
      seen_ = given_.load(std::memory_order_seq_cst);
      if (seen_ == next_) return false;
    }
    do_it(slots_[next_ % kSlots]);
    done_.store(++next_, std::memory_order_release);
    return true;
  }

 private:
  std::array<Job, kSlots> slots_{};
  alignas(64) std::atomic<std::uint32_t> given_{0};
  // Used by the worker.
  alignas(64) std::atomic<std::uint32_t> done_{0};
  std::uint32_t next_ = 0;
  std::uint32_t seen_ = 0;
  // Used by the giver.
  alignas(64) std::uint32_t put_ = 0;
  std::uint32_t published_ = 0;
  std::uint32_t taken_ = 0;
  std::uint32_t known_done_ = 0;
};

}  // namespace ztcp
