// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// System calls for bulk data, done by worker threads. The kernel copies as fast as one core does,
// so throughput grows with the number of threads that are in sendmsg() and recvmsg() at once. The
// lane's thread does everything else for a stream. None of these calls blocks.
//
// Used by the lane's thread, except work(), which runs in a worker.
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

#include "core/job_ring.h"

namespace ztcp::sockets {

class SocketStream;

// A stream's call: the request, then its result. Kept inside the stream, which has at most one.
struct BulkCall {
  // The lane itself moves fewer bytes than this: the handover to a worker would take as long.
  static constexpr std::size_t kLeastBytes = 64U << 10;
  static constexpr std::size_t kMostBytes = 512U << 10;

  enum class Kind : std::uint8_t { kSend, kReceive };

  // The request.
  SocketStream* stream = nullptr;
  Kind kind{};
  int fd = -1;
  std::uint32_t vectors = 0;
  std::size_t enough_bytes = 0;  // A receive retries briefly until it has this many.
  bool is_polled = false;        // Fill the first vector by ordered_copy(): its owner polls it.
  std::array<iovec, 32> vector;
  // The result.
  std::size_t moved_bytes = 0;
  std::uint32_t calls = 0;
  int sys_errno = 0;       // The last system call's, if it failed.
  bool has_ended = false;  // A receive met the end of the stream.

  // For BulkCalls alone.
  bool is_out = false;
  std::uint8_t worker = 0;
  std::uint32_t position = 0;

  // In the worker's thread. `scratch`: a buffer of the worker, for data that is polled.
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

  // `workers` outlives this; at most `most` of them are used.
  BulkCalls(std::size_t most, Workers& workers);

  bool has_workers() const { return count() != 0; }
  // A worker can take another call.
  bool has_room() const { return least_busy() < count(); }
  // Hands `call` to a worker until collect() returns it. Requires has_room().
  void give(BulkCall& call);
  // Calls visit(call) for each finished call, which its stream may reuse from then on.
  template <class Visit>
  bool collect(Visit&& visit) {
    if (out_ == 0) return false;
    bool any = false;
    for (const auto& ring : rings_) {
      if (ring->is_empty()) continue;
      ring->reap([](BulkCall*) {});
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
  // Blocks until the call has finished; collect() still returns it. False: gave up, because the
  // process is ending.
  bool wait_for(const BulkCall& call);

  // --- The worker's thread -----------------------------------------------------------------------
  // Does this worker's next call; false: there is none.
  bool work(std::size_t worker);

 private:
  // One in progress and the next, so that the worker does not wait for a busy lane.
  static constexpr std::uint32_t kMostEach = 2;
  using Ring = JobRing<BulkCall*, kMostEach>;

  std::size_t count() const { return std::min(rings_.size(), workers_.count()); }
  std::size_t least_busy() const;

  Workers& workers_;
  std::vector<std::unique_ptr<Ring>> rings_;           // By worker.
  std::vector<std::unique_ptr<std::byte[]>> scratch_;  // By worker.
  std::size_t out_ = 0;                                // Given and not collected.
};

}  // namespace ztcp::sockets
