// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Makes the NIC's writes into GPU memory visible to the GPU: a read by the NIC pushes all its
// earlier writes ahead of itself. It uses a queue pair that is joined to itself; for iWARP two,
// which the connection manager joins to one another over the port's own address. Flushes that begin
// earlier wait for that, and fail if it takes too long.
//
// Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "transport/verbs/queue_pairs.h"

namespace ztcp::verbs {

class Flusher {
 public:
  // `address` is the port's current one. For iWARP, `manager` joins the queue pairs within
  // `joined_within`.
  static Result<Flusher, ReasonedError> create(const Device& device, const PortAddress& address,
                                               const std::shared_ptr<ConnectionManager>& manager,
                                               Duration joined_within);

  // Reads a byte of there. Returns the flush's number.
  Result<std::uint64_t> begin(const std::byte* from, std::uint32_t rkey);
  // Whether flush `id` is done. An error: it failed, and why() says so.
  Result<bool> is_done(std::uint64_t id);
  const std::string& why() const { return why_; }
  bool is_full() const { return next_ - done_ == kMost; }
  bool is_joined() const { return is_joined_; }

 private:
  static constexpr std::uint64_t kMost = 32;

  struct Read {
    const std::byte* from = nullptr;
    std::uint32_t rkey = 0;
    std::uint64_t id = 0;
  };

  explicit Flusher(std::unique_ptr<QueuePairs> reads) : reads_(std::move(reads)) {}
  Result<void, ReasonedError> join_by(const std::shared_ptr<ConnectionManager>& manager,
                                      const Device& device, const PortAddress& address,
                                      Duration within);
  Result<bool> check_cm_connections();
  tl::unexpected<Error> failed(const Error& error, std::string why);

  std::unique_ptr<QueuePairs> answers_;  // Answers the reads; null: `reads_` does itself.
  std::unique_ptr<QueuePairs> reads_;
  bool is_joined_ = true;
  // Time left for joining them. It stands still while the process is stopped, since the connection
  // manager's answer may wait unread meanwhile.
  Duration join_left_{};
  std::chrono::steady_clock::time_point checked_{};
  std::vector<Read> waiting_;  // For its being joined.
  std::uint64_t next_ = 0;
  std::uint64_t done_ = 0;  // All below are.
  std::string why_;
};

}  // namespace ztcp::verbs
