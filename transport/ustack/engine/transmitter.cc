// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/transmitter.h"

#include <cassert>
#include <cstring>

namespace ztcp::ustack {

Transmitter::Transmitter(std::uint32_t largest_payload_bytes)
    : largest_frame_bytes_(TxFrame::kHeaderCapacity + largest_payload_bytes),
      limit_(largest_frame_bytes_),
      payload_(
          std::make_unique_for_overwrite<std::byte[]>(kBurst * std::size_t{largest_frame_bytes_})) {
}

Transmitter::Allowance Transmitter::allow(TimePoint now, const link::TransmitRoom& room) {
  return {std::min(room.frames, kFramesPerTurn),
          room.tells_bytes ? limit_.room(now, room.taken_bytes, room.queued_bytes) : kUnlimited};
}

// Returns a number of frames that exceeds the limit by at most one frame even if all are of the
// largest size.
std::size_t Transmitter::next_batch(const Allowance& left) const {
  const std::size_t most = std::min(kBurst - last_, left.frames);
  if (left.bytes >= most * std::uint64_t{largest_frame_bytes_}) return most;
  return std::max<std::size_t>(left.bytes / largest_frame_bytes_, 1);
}

void Transmitter::add(std::size_t count, Allowance& left) {
  left.frames -= count;
  if (left.bytes != kUnlimited) {
    for (const TxFrame& frame : std::span(frames_).subspan(last_, count)) {
      const std::uint64_t size = std::uint64_t{frame.header_bytes} + frame.payload_bytes;
      left.bytes -= std::min(left.bytes, size);
    }
  }
  last_ += count;
}

bool Transmitter::offer(link::Link& link) {
  const std::size_t sent = link.transmit(std::span(frames_).subspan(first_, last_ - first_));
  first_ += sent;
  if (is_empty()) [[likely]] {
    first_ = last_ = 0;
    detached_ = 0;
    return sent != 0;
  }
  ++refusals_;
  // An ACK of the first copy may release the memory of a retransmission while it waits here. All
  // other payload stays until the session ends (detach_payload()).
  for (std::size_t i = first_; i < last_; ++i)
    if (frames_[i].copy_payload) detach(i);
  return sent != 0;
}

void Transmitter::detach_payload() {
  for (std::size_t i = first_; i < last_; ++i) detach(i);
}

void Transmitter::detach(std::size_t i) {
  TxFrame& frame = frames_[i];
  const std::uint32_t mark = 1U << i;
  if (frame.fragment_count == 0 || (detached_ & mark) != 0) return;
  std::byte* const own = payload_.get() + i * std::size_t{largest_frame_bytes_};
  assert(frame.payload_bytes <= largest_frame_bytes_);
  std::byte* to = own;
  for (const Fragment& fragment : std::span(frame.fragments).first(frame.fragment_count)) {
    if (fragment.size_bytes != 0) std::memcpy(to, fragment.data, fragment.size_bytes);
    to += fragment.size_bytes;
  }
  frame.fragments[0] = {own, frame.payload_bytes, kUnmapped};
  frame.fragment_count = 1;
  frame.copy_payload = true;
  detached_ |= mark;
}

}  // namespace ztcp::ustack
