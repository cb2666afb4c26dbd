// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames that belong to no connection: resets, ARP replies, echo replies. A bounded ring of
// finished frames; frames that don't fit are dropped, which limits their rate: a flood gets at most
// one ring of answers per collect(). Owned by a Stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/frame.h"

namespace ztcp::tcp {

class ControlQueue {
 public:
  static constexpr std::uint32_t kCapacity = 64;

  ControlQueue() : frames_(kCapacity) {}

  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ == kCapacity; }

  // A frame to fill in, sent by the next collect(); nullptr when the ring is full.
  TxFrame* add() {
    if (full()) return nullptr;
    TxFrame& frame = frames_[tail_++ & (kCapacity - 1)];
    frame.fragment_count = 0;
    frame.payload_bytes = 0;
    frame.segment_size_bytes = 0;
    frame.copy_payload = false;
    frame.checksum_offload = false;
    return &frame;
  }
  bool take(TxFrame& out) {
    if (empty()) return false;
    out = frames_[head_++ & (kCapacity - 1)];
    return true;
  }

 private:
  std::vector<TxFrame> frames_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace ztcp::tcp
