// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Limits the bytes that are queued in a NIC, like Linux's byte queue limits. A ring of frames alone
// is a poor limit: a thousand super-segments take tens of milliseconds on the wire, every ACK and
// retransmission queues behind them, and congestion control takes that delay for the path's. Data
// beyond the limit waits in the stack, which still chooses what to send first.
//
// The line stays busy while the NIC has more bytes than it sends between two turns, so the limit is
// twice the most that it recently sent between two turns. If the queue runs empty although bytes
// were held back, the limit was too low (turns have become rarer, for example) and doubles.
//
// A value: time and counts are arguments.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace ztcp::ustack {

class QueueLimit {
 public:
  static constexpr std::uint64_t kLeastBytes = 64U << 10;
  // The most that was sent between two turns is remembered for one to two of these spans.
  static constexpr Duration kMemory = std::chrono::milliseconds(500);

  explicit QueueLimit(std::uint64_t largest_frame_bytes)
      : least_bytes_(std::max(kLeastBytes, 2 * largest_frame_bytes)) {}

  // Called before a turn sends: the NIC accepted `taken` bytes since the start, `queued` of them
  // have not left it yet. Returns the number of bytes that may be added.
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
  // The turn used all room and may have had more to send.
  void note_held_back() { held_back_ = true; }

  std::uint64_t limit_bytes() const {
    return std::max(least_bytes_, 2 * std::max(most_, most_before_));
  }

 private:
  std::uint64_t least_bytes_;
  std::uint64_t sent_ = 0;
  std::uint64_t most_ = 0;         // Most sent between two turns, since began_.
  std::uint64_t most_before_ = 0;  // The same for the span before.
  TimePoint began_{};
  bool held_back_ = false;
};

}  // namespace ztcp::ustack
