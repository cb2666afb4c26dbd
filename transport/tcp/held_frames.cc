// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/held_frames.h"

#include <algorithm>
#include <cassert>

namespace ztcp::tcp {

HeldFrames::HeldFrames(std::size_t max_bytes, std::size_t max_frames)
    : max_bytes_(max_bytes), pieces_(max_frames), ranges_(max_frames) {
  released_.reserve(max_frames);
  free_.reserve(max_frames);
  free_ranges_.reserve(max_frames);
  for (std::size_t i = max_frames; i > 0; --i) {
    free_.push_back(static_cast<std::uint32_t>(i - 1));
    free_ranges_.push_back(static_cast<std::uint32_t>(i - 1));
  }
}

std::uint32_t HeldFrames::hold(const RxFrame& frame, SeqNum seq, std::uint32_t offset,
                               std::uint32_t length, std::size_t& share_bytes) {
  // Released frames that nobody fetched count: the link does not have them back.
  if (released_.size() + held_frames_ == pieces_.size() ||
      share_bytes + frame.charge_bytes + held_bytes_ + released_bytes_ > max_bytes_)
    return kNone;
  const std::uint32_t at = free_.back();
  free_.pop_back();
  pieces_[at] = {frame, seq, offset, length, kNone};
  held_bytes_ += frame.charge_bytes;
  share_bytes += frame.charge_bytes;
  ++held_frames_;
  return at;
}

void HeldFrames::release(std::uint32_t piece, std::size_t& share_bytes) {
  Piece& held = pieces_[piece];
  held_bytes_ -= held.frame.charge_bytes;
  share_bytes -= held.frame.charge_bytes;
  released_bytes_ += held.frame.charge_bytes;
  --held_frames_;
  held.frame.kept = false;
  assert(released_.size() < released_.capacity());
  released_.push_back(held.frame);
  free_.push_back(piece);
}

std::size_t HeldFrames::take_released(std::span<RxFrame> out) {
  const std::size_t count = std::min(out.size(), released_.size());
  // From the back: order means nothing to the link.
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = released_.back();
    released_bytes_ -= released_.back().charge_bytes;
    released_.pop_back();
  }
  return count;
}

std::uint32_t HeldFrames::take_range() {
  assert(!free_ranges_.empty());
  const std::uint32_t range = free_ranges_.back();
  free_ranges_.pop_back();
  return range;
}

}  // namespace ztcp::tcp
