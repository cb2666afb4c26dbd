// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/held_frames.h"

#include <algorithm>
#include <cassert>

namespace ztcp::tcp {

HeldFrames::HeldFrames(std::size_t max_bytes, std::size_t max_frames, const Shard& shard)
    : max_bytes_(max_bytes),
      is_shared_(shard.count > 1),
      own_queue_(shard.index),
      pieces_(max_frames),
      ranges_(max_frames),
      loans_(max_frames / 2) {
  released_.reserve(max_frames);
  free_.reserve(max_frames);
  free_ranges_.reserve(max_frames);
  free_loans_.reserve(loans_.size());
  for (std::size_t i = loans_.size(); i > 0; --i)
    free_loans_.push_back(static_cast<std::uint32_t>(i - 1));
  for (std::size_t i = max_frames; i > 0; --i) {
    free_.push_back(static_cast<std::uint32_t>(i - 1));
    free_ranges_.push_back(static_cast<std::uint32_t>(i - 1));
  }
}

std::uint32_t HeldFrames::hold(const RxFrame& frame, SeqNum seq, std::uint32_t offset,
                               std::uint32_t length, std::size_t& share_bytes) {
  // A connection may hold as much as remains for all others.
  if (!has_place() || share_bytes + frame.charge_bytes + out_bytes() > max_bytes_ ||
      has_enough_of_others(frame))
    return kNone;
  if (is_of_others(frame)) ++held_of_others_;
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
  --held_frames_;
  if (is_of_others(held.frame)) --held_of_others_;
  free_.push_back(piece);
  const bool was_lent = shown_ == &held.frame && shown_loan_ != kNone;
  if (shown_ == &held.frame) hide();
  if (!was_lent) note_released(held.frame);
}

std::uint32_t HeldFrames::lend() {
  if (shown_ == nullptr) return kNone;
  if (shown_loan_ == kNone) {
    const std::uint32_t charge = shown_->charge_bytes;
    if (free_loans_.empty() || !has_place() ||
        lent_bytes_ + charge > (max_bytes_ - held_bytes_) / 2 || out_bytes() + charge > max_bytes_)
      return kNone;
    shown_loan_ = free_loans_.back();
    free_loans_.pop_back();
    shown_->kept = true;
    loans_[shown_loan_] = {.frame = *shown_, .uses = 1};
    lent_bytes_ += charge;
  }
  ++loans_[shown_loan_].uses;
  return shown_loan_;
}

void HeldFrames::give_back(std::uint32_t loan) {
  Loan& lent = loans_[loan];
  if (--lent.uses != 0) return;
  lent_bytes_ -= lent.frame.charge_bytes;
  free_loans_.push_back(loan);
  note_released(lent.frame);
}

void HeldFrames::note_released(RxFrame& frame) {
  frame.kept = false;
  released_bytes_ += frame.charge_bytes;
  assert(released_.size() < released_.capacity());
  released_.push_back(frame);
}

std::size_t HeldFrames::take_released(std::span<RxFrame> out) {
  const std::size_t count = std::min(out.size(), released_.size());
  // From the back: the order does not matter to the link.
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
