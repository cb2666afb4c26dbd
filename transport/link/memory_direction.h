// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One direction between two links in memory, from a filling to an emptying thread. For
// memory_link.h, and for tests that join links in other ways.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/frame.h"

namespace ztcp::link {

// Passes small numbers from one thread to one other, in order. Its capacity covers all numbers, so
// pushing never fails.
class NumberRing {
 public:
  explicit NumberRing(std::uint32_t capacity) : slots_(std::bit_ceil(capacity)) {}

  void push(std::uint32_t number) {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    slots_[tail & (slots_.size() - 1)] = number;
    tail_.store(tail + 1, std::memory_order_release);
  }
  bool pop(std::uint32_t& number) {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    number = slots_[head & (slots_.size() - 1)];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  bool empty() const { return size() == 0; }
  // How many the consumer may pop.
  std::uint32_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_relaxed);
  }

 private:
  std::vector<std::uint32_t> slots_;
  alignas(64) std::atomic<std::uint32_t> head_{0};
  alignas(64) std::atomic<std::uint32_t> tail_{0};
};

// One direction: frame memory, the numbers of filled frames, and the numbers of free frames on
// their way back.
struct Direction {
  Direction(std::uint32_t frames, std::uint32_t frame_bytes)
      : memory(std::size_t{frames} * frame_bytes),
        sizes(frames),
        filled(frames),
        free(frames),
        bytes_per_frame(frame_bytes) {
    for (std::uint32_t i = 0; i < frames; ++i) free.push(i);
  }
  std::byte* frame(std::uint32_t number) {
    return memory.data() + std::size_t{number} * bytes_per_frame;
  }

  std::vector<std::byte> memory;
  std::vector<std::uint32_t> sizes;
  NumberRing filled;
  NumberRing free;
  std::uint32_t bytes_per_frame;
  std::atomic<std::uint64_t> received_bytes{0};  // Written by the receiver alone.
};

// Returns the frame's size.
inline std::uint32_t copy_frame(const TxFrame& frame, std::byte* to) {
  std::memcpy(to, frame.header.data(), frame.header_bytes);
  std::uint32_t at = frame.header_bytes;
  for (std::size_t i = 0; i < frame.fragment_count; ++i) {
    const Fragment& fragment = frame.fragments[i];
    if (fragment.size_bytes != 0) std::memcpy(to + at, fragment.data, fragment.size_bytes);
    at += fragment.size_bytes;
  }
  return at;
}

}  // namespace ztcp::link
