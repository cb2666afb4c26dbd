// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Segments that arrived ahead of their turn: a connection's bounded, sorted set of ranges, each a
// chain of held frames, and the SACK blocks that tell the peer about them. Overlaps are trimmed on
// arrival, so every held byte is held once.
//
// HeldFrames is the Stack's one store of held frames, which bounds them by the memory they really
// occupy and keeps one connection's losses from taking all of it; Reassembly belongs to a Receiver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/core/frame.h"
#include "transport/tcp/seq_num.h"
#include "transport/wire/tcp_options.h"

namespace ztcp::tcp {

class HeldFrames {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Payload bytes [offset, offset + length) of a frame, standing at `seq`.
  struct Piece {
    RxFrame frame;
    SeqNum seq;
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t next = kNone;
  };

  explicit HeldFrames(std::size_t max_bytes);

  // `share_bytes` is what the caller holds already. It may hold as much as is left for all others:
  // one lossy connection gets half, n of them an equal part each and the next one still as much.
  // Nothing held is ever thrown away for that: it has been SACKed, and taking it back costs the
  // peer a timeout (RFC 2018 section 8). kNone when the share is spent.
  std::uint32_t hold(const RxFrame& frame, SeqNum seq, std::uint32_t offset, std::uint32_t length,
                     std::size_t& share_bytes);
  // The frame goes to take_released(), its slot becomes free.
  void release(std::uint32_t piece, std::size_t& share_bytes);
  std::size_t take_released(std::span<RxFrame> out);

  Piece& operator[](std::uint32_t i) { return pieces_[i]; }
  std::size_t held_bytes() const { return held_bytes_; }
  std::size_t held_frames() const { return held_frames_; }

 private:
  std::size_t max_bytes_;
  std::size_t held_bytes_ = 0;
  std::size_t held_frames_ = 0;
  std::vector<Piece> pieces_;
  std::vector<RxFrame> released_;  // Its capacity is that of pieces_.
  std::vector<std::uint32_t> free_;
};

class Reassembly {
 public:
  static constexpr std::size_t kMaxRanges = 128;
  // ACKs get lost, too: each range is told this often before others are told once more (RFC 2018
  // section 4 repeats a block in "at least three" of them).
  static constexpr std::uint8_t kEnoughAcks = 3;

  struct Range {
    SeqNum begin;
    SeqNum end;
    std::uint32_t first = HeldFrames::kNone;  // Chain of pieces, in order, without gaps.
    std::uint32_t last = HeldFrames::kNone;
    std::uint32_t changed = 0;  // Stamp of the latest arrival, for newest-first SACK blocks.
    std::uint8_t told = 0;      // ACKs that named it since, up to kEnoughAcks.
  };
  enum class Outcome : std::uint8_t {
    kHeld,
    kDuplicate,  // Every byte was held already.
    kNoMemory,   // Dropped: the peer will send it again.
  };

  // `ranges` has room for kMaxRanges and outlives this, as does `frames`.
  Reassembly(std::span<Range> ranges, HeldFrames& frames)
      : ranges_(ranges.data()), frames_(&frames) {}

  bool empty() const { return count_ == 0; }
  std::size_t range_count() const { return count_; }
  const Range& range(std::size_t i) const { return ranges_[i]; }

  // A segment beyond rcv.nxt whose payload stands at `offset` of `frame`. On kHeld the frame is
  // ours and frame.kept is set. `duplicate` receives the first stretch of it that was held already
  // (begin == end: none).
  Outcome insert(RxFrame& frame, SeqNum seq, std::uint32_t offset, std::uint32_t length,
                 wire::SackBlock& duplicate);

  // While the oldest held bytes are due at `next`: hands each piece to
  // fn(const RxFrame&, offset, length) and releases its frame. fn returns false to stop, having
  // called clear(). Returns the new rcv.nxt.
  template <class Fn>
  SeqNum deliver(SeqNum next, Fn&& fn);

  // Releases everything.
  void clear();

  // RFC 2018 section 4: the range of the newest arrival first, then older ones; those told less
  // often since they changed before those told more often, so that a burst with many holes is told
  // in a few ACKs. Ahead of them all goes the range around `duplicate` (RFC 2883 section 4.2).
  // Returns how many.
  std::size_t take_sack_blocks(std::span<wire::SackBlock> out, const wire::SackBlock& duplicate);
  bool has_unreported() const;

 private:
  void touch(Range& range) {
    range.changed = ++stamp_;
    range.told = 0;
  }
  void remove_range(std::size_t i);
  void release_chain(std::uint32_t piece);

  Range* ranges_;
  HeldFrames* frames_;
  std::size_t count_ = 0;
  std::size_t held_bytes_ = 0;  // Of frames_, by charge.
  std::uint32_t stamp_ = 0;
};

template <class Fn>
SeqNum Reassembly::deliver(SeqNum next, Fn&& fn) {
  while (count_ > 0 && ranges_[0].begin.at_or_before(next)) {
    // Unlinked before fn runs, so that whatever fn does finds the set consistent.
    const std::uint32_t at = ranges_[0].first;
    const HeldFrames::Piece piece = (*frames_)[at];
    const SeqNum piece_end = piece.seq + piece.length;
    ranges_[0].first = piece.next;
    ranges_[0].begin = piece_end;
    if (piece.next == HeldFrames::kNone) remove_range(0);

    bool go_on = true;
    if (piece_end.after(next)) {
      const std::uint32_t skip = piece.seq.before(next) ? bytes_between(piece.seq, next) : 0;
      next = piece_end;
      go_on = fn(piece.frame, piece.offset + skip, piece.length - skip);
    }
    frames_->release(at, held_bytes_);
    if (!go_on) break;
  }
  return next;
}

}  // namespace ztcp::tcp
