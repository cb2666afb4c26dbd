// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Segments that arrived ahead of their turn: a connection's sorted set of ranges, each a chain of
// held frames, and the SACK blocks that report them. Overlaps are trimmed on arrival, so every held
// byte is held once. Only memory limits the number of ranges, and the cost of a frame hardly grows
// with it. Owned by a Receiver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/frame.h"
#include "transport/tcp/held_frames.h"
#include "transport/tcp/range_tree.h"
#include "transport/tcp/seq_num.h"
#include "transport/wire/tcp_options.h"

namespace ztcp::tcp {

class Reassembly {
 public:
  // ACKs get lost, too: each range is reported this often before other ranges are reported again
  // (RFC 2018 section 4 repeats a block in "at least three" of them).
  static constexpr std::uint8_t kEnoughAcks = 3;

  enum class Outcome : std::uint8_t {
    kHeld,
    kDuplicate,  // Every byte was held already.
    kNoMemory,   // Dropped: the peer will send it again.
  };

  // `frames` must outlive this.
  explicit Reassembly(HeldFrames& frames) : frames_(&frames), tree_(frames.ranges()) {}

  HeldFrames& frames() { return *frames_; }
  bool empty() const { return tree_.size() == 0; }
  std::size_t range_count() const { return tree_.size(); }
  // The oldest range, if it begins before `seq`.
  std::optional<wire::SackBlock> first_before(SeqNum seq) const {
    const std::uint32_t at = tree_.first();
    if (at == kNone || !tree_[at].begin.before(seq)) return std::nullopt;
    return wire::SackBlock{tree_[at].begin.raw(), tree_[at].end.raw()};
  }

  // A segment beyond rcv.nxt whose payload starts at `offset` of `frame`. On kHeld this object owns
  // the frame and frame.kept is set. `duplicate` receives the first part of it that was held
  // already (begin == end: none).
  Outcome insert(RxFrame& frame, SeqNum seq, std::uint32_t offset, std::uint32_t length,
                 wire::SackBlock& duplicate);

  // While the oldest held bytes are due at `next`: passes each piece to fn(const RxFrame&, offset,
  // length) and releases its frame. fn returns false to stop, having called clear(). Returns the
  // new rcv.nxt.
  template <class Fn>
  SeqNum deliver(SeqNum next, Fn&& fn);

  // Releases everything.
  void clear();

  // RFC 2018 section 4: the range of the newest arrival first; then by number of reports since a
  // range last grew, so that a burst with many holes is reported in a few ACKs. The range around
  // `duplicate` comes before all (RFC 2883 section 4.2). Returns the number of blocks.
  std::size_t take_sack_blocks(std::span<wire::SackBlock> out, const wire::SackBlock& duplicate);
  bool has_unreported() const { return lines_[0].first != RangeTree::kNone; }

 private:
  static constexpr std::uint32_t kNone = RangeTree::kNone;
  static_assert(kNone == HeldFrames::kNone);

  // List of the ranges that as many ACKs have reported, in the order of their next report.
  struct Line {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  void leave_line(std::uint32_t range);
  void join_front(std::uint32_t range, std::uint8_t told);
  void join_back(std::uint32_t range, std::uint8_t told);
  // The range grew, or arrived again: it is unreported.
  void touch(std::uint32_t range) {
    if (lines_[0].first == range) return;
    leave_line(range);
    join_front(range, 0);
  }
  void note_told(std::uint32_t range);

  void add_range(std::uint32_t piece, SeqNum begin, SeqNum end, std::uint32_t previous);
  void remove_range(std::uint32_t range);
  void release_chain(std::uint32_t piece);

  HeldFrames* frames_;
  RangeTree tree_;
  std::size_t held_bytes_ = 0;  // In frames_, by charge.
  std::array<Line, kEnoughAcks + 1> lines_;
};

template <class Fn>
SeqNum Reassembly::deliver(SeqNum next, Fn&& fn) {
  while (!empty() && tree_[tree_.first()].begin.at_or_before(next)) {
    // Unlinked before fn runs, so that fn finds the set consistent.
    Range& range = tree_[tree_.first()];
    const std::uint32_t at = range.first;
    const HeldFrames::Piece piece = (*frames_)[at];
    const SeqNum piece_end = piece.seq + piece.length;
    range.first = piece.next;
    range.begin = piece_end;
    if (piece.next == HeldFrames::kNone) remove_range(tree_.first());

    bool go_on = true;
    if (piece_end.after(next)) {
      const std::uint32_t skip = piece.seq.before(next) ? bytes_between(piece.seq, next) : 0;
      next = piece_end;
      frames_->show((*frames_)[at].frame);
      go_on = fn(piece.frame, piece.offset + skip, piece.length - skip);
    }
    frames_->release(at, held_bytes_);
    if (!go_on) break;
  }
  return next;
}

}  // namespace ztcp::tcp
