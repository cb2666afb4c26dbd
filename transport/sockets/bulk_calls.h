// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// System calls that move many bytes, done by workers: the kernel copies at what one core copies, so
// what counts in bulk is how many threads are in sendmsg() and recvmsg() at the same time. All else
// of a stream stays with whoever runs its turns. None of these calls blocks.
//
// Belongs to the thread that has the turn, but for work(), which is a worker's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/types.h>
#include <sys/uio.h>
#include <vector>

#include "transport/core/job_ring.h"

namespace ztcp::sockets {

class SocketStream;

// One of a stream's, in its place in there: what is to be done, and how it went.
struct BulkCall {
  // Of fewer bytes a turn takes care itself: to wake somebody and to hear of him takes as long.
  static constexpr std::size_t kLeastBytes = 64U << 10;
  static constexpr std::size_t kMostBytes = 512U << 10;

  enum class Kind : std::uint8_t { kSend, kReceive };

  // Set by the giver.
  SocketStream* stream = nullptr;
  Kind kind{};
  int fd = -1;
  std::uint32_t vectors = 0;
  std::size_t enough_bytes = 0;  // A receive waits a little for so many.
  bool is_polled = false;        // What it receives goes by ordered_copy() to the first vector.
  std::array<iovec, 32> vector;
  // The answer.
  std::size_t moved_bytes = 0;
  std::uint32_t calls = 0;
  int sys_errno = 0;       // Of the last call, which moved nothing.
  bool has_ended = false;  // A receive met the end of the stream.

  // BulkCalls'.
  bool is_out = false;
  std::uint8_t worker = 0;
  std::uint32_t position = 0;

  // The worker's, who has memory to receive to.
  static constexpr std::size_t kScratchBytes = 64U << 10;
  void run(std::span<std::byte> scratch);

 private:
  ssize_t send() const;
  ssize_t receive(std::span<std::byte> scratch);
  void skip(std::size_t bytes);
};

class BulkCalls {
 public:
  static constexpr std::size_t kMaxWorkers = 16;

  // `workers` outlives it; of them at most `most` get anything.
  BulkCalls(std::size_t most, Workers& workers);

  bool has_workers() const { return count() != 0; }
  // Somebody has not enough to do.
  bool has_room() const { return least_busy() < count(); }
  // Only with room.
  void give(BulkCall& call);
  // Calls visit(call) for each that has been done, which is the giver's again.
  template <class Visit>
  bool collect(Visit&& visit) {
    if (out_ == 0) return false;
    bool any = false;
    for (const auto& ring : rings_) {
      if (ring->is_empty()) continue;
      ring->look([](BulkCall*) {});
      while (BulkCall** const first = ring->first_done()) {
        BulkCall& call = **first;
        ring->take_first();
        --out_;
        call.is_out = false;
        any = true;
        visit(call);
      }
    }
    return any;
  }
  // Returns when it has been done (which is not collected yet), or nobody is waited for any longer:
  // false.
  bool wait_for(const BulkCall& call);

  // --- The worker's thread -----------------------------------------------------------------------
  // Does its next call; false: there is none.
  bool work(std::size_t worker);

 private:
  // One that it is at, and the next, so that it goes on while a turn is busy.
  static constexpr std::uint32_t kMostEach = 2;
  using Ring = JobRing<BulkCall*, kMostEach>;

  std::size_t count() const { return std::min(rings_.size(), workers_.count()); }
  std::size_t least_busy() const;

  Workers& workers_;
  std::vector<std::unique_ptr<Ring>> rings_;           // Of each worker;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;  // not touched before it is used.
  std::size_t out_ = 0;
};

}  // namespace ztcp::sockets
