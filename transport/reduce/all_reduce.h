// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All-reduce over the hosts of a group, by direct exchange. Large vectors: each host owns a part,
// receives the others' contributions to it, reduces them in the order of the hosts, and sends the
// result to all. Small vectors, and rounded ones between two hosts: each sends everything to all
// and reduces everything. Either way all hosts get the same bits, in every run (of a NaN, only that
// it is one).
//
// Its two halves are calls of their own: all-gather, and reduce-scatter (window.h). There a host
// sends each other one what that one needs: one hop.
//
// With Wire::kBfloat16 and Wire::kFloat8 large sums of floats travel in fewer bytes: each
// contribution is rounded once, also a host's own, and where a sum is sent, the sum once more.
//
// All hosts start the same jobs in the same order, whatever their kinds. Pure: no thread, clock or
// allocation after construction; it advances inside the calls of test(). Threads: one at a time,
// but work() and settle() are for any: workers may share the passes over the elements (passes.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "transport/reduce/element.h"
#include "transport/reduce/passes.h"
#include "transport/reduce/peers.h"
#include "transport/reduce/segment.h"
#include "transport/reduce/window.h"

namespace ztcp::reduce {

class AllReduce;

// The arguments of a call. `from` and `to` may be the same; they must not overlap in another way.
// All-gather: `from` has the elements of this host's part that lie in the window, `to` the whole
// window; reduce-scatter: the reverse. There the host's part of the one may be the other.
struct Operands {
  const std::byte* from = nullptr;
  Registration* from_registration = nullptr;
  std::byte* to = nullptr;
  Registration* to_registration = nullptr;
  std::size_t count = 0;
  ElementType type = ElementType::kFloat32;
  Reduction reduction = Reduction::kSum;
  Collective collective = Collective::kAllReduce;
  Window window{};  // Of an all-gather or a reduce-scatter; it has `count` elements.
};

// A call under way. Lives in its AllReduce's table; invalid once test() returned true.
class Job {
 public:
  Result<bool> test();
  std::size_t size_bytes() const { return operands_.count * size_of(operands_.type); }

 private:
  friend class AllReduce;
  const std::byte* from(std::size_t element) const {
    return operands_.from + (element - from_begin_) * size_of(operands_.type);
  }
  std::byte* to(std::size_t element) const {
    return operands_.to + (element - to_begin_) * size_of(operands_.type);
  }

  AllReduce* owner_ = nullptr;
  Operands operands_;
  std::size_t from_begin_ = 0;  // Number of the first element at `from`, and at `to`.
  std::size_t to_begin_ = 0;
  Wire wire_ = Wire::kAsIs;
  Exchange exchange_ = Exchange::kWhole;
  std::uint64_t number_ = 0;
  std::size_t longest_segment_ = 0;  // As a number of elements.
  std::size_t cut_ = 0;              // Elements that are in segments, or were.
  std::uint64_t end_ = 0;            // Number of the segment behind the last one, once all is cut.
  bool is_used_ = false;
};

struct GroupSetup {
  std::size_t hosts = 1;
  std::size_t rank = 0;
  Wire wire = Wire::kAsIs;
  std::byte* scratch = nullptr;  // AllReduce::scratch_bytes() of memory.
  Registration* scratch_registration = nullptr;
  Workers* workers = nullptr;  // They call AllReduce::work(). Null: none.
};

class AllReduce {
 public:
  static constexpr std::size_t kMaxJobs = 32;
  // From this many bytes of a vector on, sums of floats take a rounding wire.
  static constexpr std::size_t kRoundedBytes = 64 << 10U;

  AllReduce(Peers& peers, const GroupSetup& setup);
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  static std::size_t scratch_bytes(std::size_t hosts, Wire wire);

  // nullptr: kMaxJobs are under way.
  Result<Job*> start(const Operands& operands);

  // --- Any thread --------------------------------------------------------------------------------
  //
  // Does a part of a pass; false: there is none to do.
  bool work() { return passes_.work(); }
  // Returns once no thread uses the operands of the passes given so far: before they are freed.
  void settle() { passes_.settle(); }

 private:
  friend class Job;
  static constexpr std::size_t kSlots = 16;  // Segments under way.

  struct Segment {
    Job* job = nullptr;
    Range elements;
    std::uint32_t open_tasks = 0;  // Tasks of its pass that are not done.
  };
  // The messages of one kind with one host, by the number of their segment.
  struct Stream {
    std::size_t host = 0;
    Lane lane = Lane::kContributions;
    bool is_send = false;
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::array<Peers::Ticket, kSlots> tickets{};  // nullptr: the segment has no such message.
  };

  Result<bool> test(Job& job);
  Status advance();
  Result<bool> step();
  bool cut_segments();
  std::size_t longest_segment(const Job& job) const;
  Result<bool> post(Stream& stream);
  Result<bool> finish(Stream& stream);
  bool reduce_segments();
  bool widen_segments();
  bool pass_ended(std::uint64_t& ended, std::uint64_t given);

  bool is_ready(const Stream& stream) const;
  Piece piece_for(const Stream& stream, std::uint64_t number) const;
  void give(std::uint64_t number, Pass pass);
  void round_contributions(std::uint64_t number);
  bool is_rounded_here(Exchange exchange, std::size_t host) const;
  void copy_own_part(std::uint64_t number);
  void reduce(std::uint64_t number);
  void widen_sums(std::uint64_t number);
  bool all_done(Lane lane, bool is_send, std::uint64_t number) const;

  const Segment& segment(std::uint64_t number) const { return segments_[number % kSlots]; }
  const std::byte** sources(std::uint64_t number) {
    return sources_.data() + number % kSlots * setup_.hosts;
  }
  Slot slot(std::uint64_t number) const;
  Range part(const Segment& segment, std::size_t host) const;

  Peers& peers_;
  const GroupSetup setup_;
  std::array<Job, kMaxJobs> jobs_{};
  std::uint64_t started_ = 0;  // Jobs started so far; the next takes the place of this number.
  std::uint64_t cutting_ = 0;  // Job from which segments are cut.
  std::array<Segment, kSlots> segments_{};
  // The steps of a segment, in order; each is the number of segments so far that are past it.
  std::uint64_t begun_ = 0;     // Cut, and the pass that rounds contributions is given.
  std::uint64_t rounded_ = 0;   // Contributions may be sent.
  std::uint64_t reducing_ = 0;  // All contributions are here, and the pass that reduces is given.
  std::uint64_t reduced_ = 0;   // The sum may be sent.
  std::uint64_t widening_ = 0;  // All sums are here, and the pass that widens them is given.
  std::uint64_t ended_ = 0;
  std::vector<Stream> streams_;
  std::vector<const std::byte*> sources_;  // By slot and host.
  Passes passes_;
  std::optional<Error> failure_;
};

}  // namespace ztcp::reduce
