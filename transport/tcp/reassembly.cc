// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/reassembly.h"

#include <algorithm>
#include <cassert>

namespace ztcp::tcp {

// --- Ranges

void Reassembly::add_range(std::uint32_t piece, SeqNum begin, SeqNum end, std::uint32_t previous) {
  const std::uint32_t at = frames_->take_range();
  tree_[at] = {.begin = begin, .end = end, .first = piece, .last = piece};
  tree_.insert(at, previous);
  join_front(at, 0);
}

void Reassembly::remove_range(std::uint32_t range) {
  leave_line(range);
  tree_.remove(range);
  frames_->give_range(range);
}

void Reassembly::release_chain(std::uint32_t piece) {
  while (piece != HeldFrames::kNone) {
    const std::uint32_t next = (*frames_)[piece].next;
    frames_->release(piece, held_bytes_);
    piece = next;
  }
}

void Reassembly::clear() {
  for (std::uint32_t at = tree_.first(); at != kNone;) {
    const std::uint32_t next = tree_[at].next;
    release_chain(tree_[at].first);
    frames_->give_range(at);
    at = next;
  }
  tree_ = RangeTree(frames_->ranges());
  lines_ = {};
}

Reassembly::Outcome Reassembly::insert(RxFrame& frame, SeqNum seq, std::uint32_t offset,
                                       std::uint32_t length, wire::SackBlock& duplicate) {
  assert(length > 0);
  duplicate = {};
  SeqNum end = seq + length;
  // The ranges left and right of its first byte.
  std::uint32_t right = tree_.first_ending_after(seq);
  std::uint32_t left = right == kNone ? tree_.last() : tree_[right].previous;

  // Its front part may be held already.
  if (right != kNone && tree_[right].begin.at_or_before(seq)) {
    const SeqNum held_to = earlier(tree_[right].end, end);
    duplicate = {seq.raw(), held_to.raw()};
    touch(right);
    if (held_to == end) return Outcome::kDuplicate;
    offset += bytes_between(seq, held_to);
    seq = held_to;
    left = right;
    right = tree_[right].next;
  }
  // Ranges that it covers wholly are released: this frame brings the same bytes. A range that it
  // partly overlaps keeps its own bytes.
  std::uint32_t covered = right;
  while (right != kNone && tree_[right].begin.before(end)) {
    const Range& range = tree_[right];
    if (duplicate == wire::SackBlock{})
      duplicate = {range.begin.raw(), earlier(range.end, end).raw()};
    if (range.end.after(end)) {
      end = range.begin;
      break;
    }
    right = range.next;
  }

  const std::uint32_t piece =
      frames_->hold(frame, seq, offset, bytes_between(seq, end), held_bytes_);
  if (piece == HeldFrames::kNone) return Outcome::kNoMemory;
  frame.kept = true;
  while (covered != right) {
    const std::uint32_t next = tree_[covered].next;
    release_chain(tree_[covered].first);
    remove_range(covered);
    covered = next;
  }

  const bool joins_left = left != kNone && tree_[left].end == seq;
  const bool joins_right = right != kNone && tree_[right].begin == end;
  if (joins_left) {
    Range& range = tree_[left];
    (*frames_)[range.last].next = piece;
    range.last = piece;
    range.end = end;
    touch(left);
    if (joins_right) {
      const Range behind = tree_[right];
      remove_range(right);
      (*frames_)[piece].next = behind.first;
      range.last = behind.last;
      range.end = behind.end;
    }
  } else if (joins_right) {
    Range& range = tree_[right];
    (*frames_)[piece].next = range.first;
    range.first = piece;
    range.begin = seq;
    touch(right);
  } else {
    add_range(piece, seq, end, left);
  }
  return Outcome::kHeld;
}

// --- SACK

void Reassembly::leave_line(std::uint32_t at) {
  const Range& range = tree_[at];
  Line& line = lines_[range.told];
  (range.line_previous == kNone ? line.first : tree_[range.line_previous].line_next) =
      range.line_next;
  (range.line_next == kNone ? line.last : tree_[range.line_next].line_previous) =
      range.line_previous;
}

void Reassembly::join_front(std::uint32_t at, std::uint8_t told) {
  Range& range = tree_[at];
  Line& line = lines_[told];
  range.told = told;
  range.line_previous = kNone;
  range.line_next = line.first;
  (line.first == kNone ? line.last : tree_[line.first].line_previous) = at;
  line.first = at;
}

void Reassembly::join_back(std::uint32_t at, std::uint8_t told) {
  Range& range = tree_[at];
  Line& line = lines_[told];
  range.told = told;
  range.line_next = kNone;
  range.line_previous = line.last;
  (line.last == kNone ? line.first : tree_[line.last].line_next) = at;
  line.last = at;
}

void Reassembly::note_told(std::uint32_t at) {
  const std::uint8_t told = tree_[at].told;
  if (told == kEnoughAcks) return;
  leave_line(at);
  // Once all ranges have been reported often enough, the newest are reported again.
  if (told + 1 == kEnoughAcks)
    join_front(at, kEnoughAcks);
  else
    join_back(at, static_cast<std::uint8_t>(told + 1));
}

std::size_t Reassembly::take_sack_blocks(std::span<wire::SackBlock> out,
                                         const wire::SackBlock& duplicate) {
  std::array<std::uint32_t, wire::kMaxSackBlocks> chosen;
  const std::size_t wanted = std::min({out.size(), chosen.size(), tree_.size()});
  std::size_t count = 0;
  std::uint32_t leader = kNone;
  if (wanted > 0 && duplicate.begin != duplicate.end) {
    const std::uint32_t at = tree_.first_ending_after(SeqNum(duplicate.begin));
    const bool around = at != kNone && tree_[at].begin.at_or_before(SeqNum(duplicate.begin)) &&
                        SeqNum(duplicate.end).at_or_before(tree_[at].end);
    if (around) chosen[count++] = leader = at;
  }
  for (const Line& line : lines_)
    for (std::uint32_t at = line.first; at != kNone && count < wanted; at = tree_[at].line_next)
      if (at != leader) chosen[count++] = at;
  assert(count == wanted);
  for (std::size_t i = 0; i < count; ++i) {
    const Range& range = tree_[chosen[i]];
    out[i] = {range.begin.raw(), range.end.raw()};
    note_told(chosen[i]);
  }
  return count;
}

}  // namespace ztcp::tcp
