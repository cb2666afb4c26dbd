// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/reassembly.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace ztcp::tcp {
namespace {

// Bounds the slots: links charge at least a small buffer per frame.
constexpr std::size_t kLeastChargeBytes = 1024;

}  // namespace

HeldFrames::HeldFrames(std::size_t max_bytes) : max_bytes_(max_bytes) {
  const std::size_t slots = std::clamp<std::size_t>(max_bytes / kLeastChargeBytes, 16, 65536);
  pieces_.resize(slots);
  free_.reserve(slots);
  // A frame given back and not yet taken keeps no slot, so twice as many may be under way.
  released_.reserve(2 * slots);
  for (std::size_t i = slots; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
}

std::uint32_t HeldFrames::hold(const RxFrame& frame, SeqNum seq, std::uint32_t offset,
                               std::uint32_t length, std::size_t& share_bytes) {
  // Released frames that nobody fetched count: the link does not have them back.
  if (free_.empty() || share_bytes + frame.charge_bytes > max_bytes_ - held_bytes_ ||
      released_.size() + held_frames_ >= released_.capacity())
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
    released_.pop_back();
  }
  return count;
}

void Reassembly::remove_range(std::size_t i) {
  std::copy(ranges_ + i + 1, ranges_ + count_, ranges_ + i);
  --count_;
}

void Reassembly::release_chain(std::uint32_t piece) {
  while (piece != HeldFrames::kNone) {
    const std::uint32_t next = (*frames_)[piece].next;
    frames_->release(piece, held_bytes_);
    piece = next;
  }
}

void Reassembly::clear() {
  for (std::size_t i = 0; i < count_; ++i) release_chain(ranges_[i].first);
  count_ = 0;
}

Reassembly::Outcome Reassembly::insert(RxFrame& frame, SeqNum seq, std::uint32_t offset,
                                       std::uint32_t length, wire::SackBlock& duplicate) {
  assert(length > 0);
  duplicate = {};
  SeqNum end = seq + length;
  // The first range that ends after seq. Arrivals are mostly at the end: look there first.
  std::size_t at = count_;
  while (at > 0 && ranges_[at - 1].end.after(seq)) --at;

  // Its front may be held already.
  if (at < count_ && ranges_[at].begin.at_or_before(seq)) {
    const SeqNum held_to = earlier(ranges_[at].end, end);
    duplicate = {seq.raw(), held_to.raw()};
    touch(ranges_[at]);
    if (held_to == end) return Outcome::kDuplicate;
    offset += bytes_between(seq, held_to);
    seq = held_to;
    ++at;
  }
  // Ranges it covers whole are released: this frame brings the same bytes. One that it reaches
  // into keeps its own.
  std::size_t covered_to = at;
  while (covered_to < count_ && ranges_[covered_to].begin.before(end)) {
    const Range& range = ranges_[covered_to];
    const SeqNum held_to = earlier(range.end, end);
    if (duplicate == wire::SackBlock{}) duplicate = {range.begin.raw(), held_to.raw()};
    if (range.end.after(end)) {
      end = range.begin;
      break;
    }
    ++covered_to;
  }

  const bool joins_left = at > 0 && ranges_[at - 1].end == seq;
  const bool joins_right = covered_to < count_ && ranges_[covered_to].begin == end;
  if (!joins_left && !joins_right && covered_to == at && count_ == kMaxRanges)
    return Outcome::kNoMemory;
  const std::uint32_t piece =
      frames_->hold(frame, seq, offset, bytes_between(seq, end), held_bytes_);
  if (piece == HeldFrames::kNone) return Outcome::kNoMemory;
  frame.kept = true;

  for (; covered_to > at; --covered_to) {
    release_chain(ranges_[at].first);
    remove_range(at);
  }
  if (joins_left) {
    Range& left = ranges_[at - 1];
    (*frames_)[left.last].next = piece;
    left.last = piece;
    left.end = end;
    touch(left);
    if (joins_right) {
      const Range& right = ranges_[at];
      (*frames_)[piece].next = right.first;
      left.last = right.last;
      left.end = right.end;
      remove_range(at);
    }
  } else if (joins_right) {
    Range& right = ranges_[at];
    (*frames_)[piece].next = right.first;
    right.first = piece;
    right.begin = seq;
    touch(right);
  } else {
    std::copy_backward(ranges_ + at, ranges_ + count_, ranges_ + count_ + 1);
    ranges_[at] = {.begin = seq, .end = end, .first = piece, .last = piece};
    touch(ranges_[at]);
    ++count_;
  }
  return Outcome::kHeld;
}

bool Reassembly::has_unreported() const {
  return std::any_of(ranges_, ranges_ + count_, [](const Range& r) { return r.told == 0; });
}

std::size_t Reassembly::take_sack_blocks(std::span<wire::SackBlock> out,
                                         const wire::SackBlock& duplicate) {
  std::array<Range*, wire::kMaxSackBlocks> chosen{};
  const std::size_t wanted = std::min({out.size(), chosen.size(), count_});
  const auto goes_first = [&](const Range& range) {
    return duplicate.begin != duplicate.end && range.begin.at_or_before(SeqNum(duplicate.begin)) &&
           SeqNum(duplicate.end).at_or_before(range.end);
  };
  for (std::size_t n = 0; n < wanted; ++n) {
    Range* best = nullptr;
    for (Range* range = ranges_; range != ranges_ + count_; ++range) {
      if (std::find(chosen.begin(), chosen.begin() + n, range) != chosen.begin() + n) continue;
      if (n == 0 && goes_first(*range)) {
        best = range;
        break;
      }
      const bool newer = best == nullptr || stamp_ - range->changed < stamp_ - best->changed;
      const bool better =
          best == nullptr || (range->told != best->told ? range->told < best->told : newer);
      if (better) best = range;
    }
    assert(best != nullptr);  // There are at least `wanted` ranges.
    chosen[n] = best;
    out[n] = {best->begin.raw(), best->end.raw()};
  }
  for (std::size_t n = 0; n < wanted; ++n)
    if (chosen[n]->told < kEnoughAcks) ++chosen[n]->told;
  return wanted;
}

}  // namespace ztcp::tcp
