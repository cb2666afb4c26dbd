// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Makes what the NIC wrote into GPU memory visible to the GPU: a read by the NIC pushes all its
// earlier writes in front of it, over a queue pair that is joined to itself.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/verbs/connection.h"

namespace ztcp::verbs {

class Flusher {
 public:
  // On the rail `index` of the connection.
  static Made<Flusher> create(Connection& connection, std::size_t index);

  // Reads a byte of there. Returns the flush's number.
  Result<std::uint64_t> begin(const std::byte* from, std::uint32_t rkey);
  // Whether flush `id` is done. An error: its completion failed, with status() so.
  Result<bool> is_done(std::uint64_t id);
  ibv_wc_status status() const { return status_; }
  bool is_full() const { return next_ - done_ == kMost; }

 private:
  static constexpr std::uint64_t kMost = 32;

  Flusher(std::byte* into, std::uint32_t lkey, std::unique_ptr<QueuePairs> queues)
      : into_(into), lkey_(lkey), queues_(std::move(queues)) {}

  std::byte* into_;
  std::uint32_t lkey_;
  std::unique_ptr<QueuePairs> queues_;
  std::uint64_t next_ = 0;
  std::uint64_t done_ = 0;  // All below are.
  ibv_wc_status status_ = IBV_WC_SUCCESS;
};

}  // namespace ztcp::verbs
