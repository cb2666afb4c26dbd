// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Connections with work to do, by index: first in, first out, each at most once. Owned by a Stack.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace ztcp::tcp {

class WorkQueue {
 public:
  explicit WorkQueue(std::uint32_t members)
      : ring_(std::bit_ceil(members + 1)),
        queued_(members, 0),
        mask_(static_cast<std::uint32_t>(ring_.size() - 1)) {}

  bool empty() const { return head_ == tail_; }
  std::uint32_t size() const { return tail_ - head_; }

  void push(std::uint32_t index) {
    if (queued_[index] != 0) return;
    queued_[index] = 1;
    ring_[tail_++ & mask_] = index;
  }
  std::uint32_t pop() {
    const std::uint32_t index = ring_[head_++ & mask_];
    queued_[index] = 0;
    return index;
  }

 private:
  std::vector<std::uint32_t> ring_;
  std::vector<std::uint8_t> queued_;
  std::uint32_t mask_;
  std::uint32_t head_ = 0;  // Free-running.
  std::uint32_t tail_ = 0;
};

}  // namespace ztcp::tcp
