// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How many bytes may wait in a NIC. A ring of frames alone is no good bound: a thousand
// super-segments are tens of milliseconds of a line, and every ACK and every repeat queues behind
// them, while the congestion control takes the queue for the path. What is held back waits in the
// stack instead, where it is still open what leaves next (the idea of Linux's byte queue limits).
//
// The line stays busy as long as the NIC has more than it sends between two looks of ours, so the
// limit is twice the most it has sent between two of them lately. When it runs dry although we held
// something back, the limit was too low (we come by less often now, say) and doubles.
//
// A value: told the time and the counts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "transport/core/clock.h"

namespace ztcp::ustack {

class QueueLimit {
 public:
  static constexpr std::uint64_t kLeastBytes = 64U << 10;
  // What a look has shown is remembered for one to two of these.
  static constexpr Duration kMemory = std::chrono::milliseconds(500);

  explicit QueueLimit(std::uint64_t largest_frame_bytes)
      : least_bytes_(std::max(kLeastBytes, 2 * largest_frame_bytes)) {}

  // A look, before a turn sends: `taken` bytes since the beginning, of which `queued` wait in the
  // NIC. How many more may join them.
  std::uint64_t room(TimePoint now, std::uint64_t taken, std::uint64_t queued) {
    if (now - began_ >= kMemory) {
      most_before_ = now - began_ < 2 * kMemory ? most_ : 0;
      most_ = 0;
      began_ = now;
    }
    const std::uint64_t sent = taken - queued;
    most_ = std::max(most_, sent - sent_);
    sent_ = sent;
    if (held_back_ && queued == 0) most_ = std::max(most_, limit_bytes());
    held_back_ = false;
    const std::uint64_t limit = limit_bytes();
    return limit > queued ? limit - queued : 0;
  }
  // The turn used the room up and may have had more to send.
  void note_held_back() { held_back_ = true; }

  std::uint64_t limit_bytes() const {
    return std::max(least_bytes_, 2 * std::max(most_, most_before_));
  }

 private:
  std::uint64_t least_bytes_;
  std::uint64_t sent_ = 0;
  std::uint64_t most_ = 0;         // Between two looks, since began_.
  std::uint64_t most_before_ = 0;  // In the span before.
  TimePoint began_{};
  bool held_back_ = false;
};

}  // namespace ztcp::ustack
