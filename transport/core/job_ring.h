// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Jobs on their way from one thread to one other, and back: a ring with three places, in order:
// where the giver puts the next job, up to where the worker has done them, and up to where the
// giver has taken them back. A job stays in its slot all the while, so what the worker writes into
// it is its answer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ztcp {

// Who does what rings hold, as the giver needs to know them: threads in the product, virtual time
// in the simulator. Named by number; each has its ring.
class Workers {
 public:
  // How many there are; may become fewer until the first job is given, not after.
  virtual std::size_t count() const = 0;
  // It has been given jobs, and may be asleep.
  virtual void wake(std::size_t worker) = 0;
  // Somebody can't go on before it has done a job: called until that is so. False: he shall, since
  // it may never run again and neither will what it works on.
  virtual bool wait_for(std::size_t worker) = 0;

 protected:
  ~Workers() = default;
};

// `kSlots` is a power of two. A job is put, and seen by the worker once it is published.
template <class Job, std::uint32_t kSlots>
class JobRing {
 public:
  static_assert((kSlots & (kSlots - 1)) == 0, "positions wrap");

  // --- The giver ---------------------------------------------------------------------------------
  std::uint32_t room() const { return kSlots - (put_ - taken_); }
  bool is_empty() const { return put_ == taken_; }
  void put(const Job& job) { slots_[put_++ % kSlots] = job; }
  // False: there was nothing new. Sequentially consistent, like the worker's last look before it
  // sleeps: one of the two sees the other.
  bool publish() {
    if (published_ == put_) return false;
    published_ = put_;
    given_.store(put_, std::memory_order_seq_cst);
    return true;
  }
  // Learns what has been done. To ask costs the worker and the giver more than a small job does, so
  // it is asked for many at once. Calls visit(job) for each that was not known to be done.
  template <class Visit>
  void look(Visit&& visit) {
    const std::uint32_t done = done_.load(std::memory_order_acquire);
    for (; known_done_ != done; ++known_done_) visit(slots_[known_done_ % kSlots]);
  }
  // The oldest job, if it is known to be done; else null.
  Job* first_done() { return known_done_ == taken_ ? nullptr : &slots_[taken_ % kSlots]; }
  void take_first() { ++taken_; }
  // Positions: of the next job to be put; and whether all before one have been done.
  std::uint32_t position() const { return put_; }
  bool is_done(std::uint32_t position) const {
    return static_cast<std::int32_t>(done_.load(std::memory_order_acquire) - position) >= 0;
  }
  // Calls visit(job) for each that was put and not taken back.
  template <class Visit>
  void for_each_out(Visit&& visit) {
    for (std::uint32_t at = taken_; at != put_; ++at) visit(slots_[at % kSlots]);
  }

  // --- The worker --------------------------------------------------------------------------------
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
  // The worker's.
  alignas(64) std::atomic<std::uint32_t> done_{0};
  std::uint32_t next_ = 0;
  std::uint32_t seen_ = 0;
  // The giver's.
  alignas(64) std::uint32_t put_ = 0;
  std::uint32_t published_ = 0;
  std::uint32_t taken_ = 0;
  std::uint32_t known_done_ = 0;
};

}  // namespace ztcp
