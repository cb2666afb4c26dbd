// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The Stack's store of frames that have not been returned to the link: frames that arrived ahead of
// their turn, and frames lent to a thread that copies their payload (FrameLoans). It limits both to
// the memory that the link can spare, counted until the link has them back, and keeps one
// connection's losses from taking all of it. Also the ranges that early frames form: never more
// than frames.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/frame.h"
#include "core/stream.h"
#include "transport/tcp/range_tree.h"
#include "transport/tcp/seq_num.h"
#include "transport/tcp/settings.h"

namespace ztcp::tcp {

class HeldFrames final : public FrameLoans {
 public:
  using FrameLoans::kNone;

  // Payload bytes [offset, offset + length) of a frame; the first has the number `seq`.
  struct Piece {
    RxFrame frame;
    SeqNum seq;
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t next = kNone;
  };

  // Limits by RxFrame::charge_bytes and by number. `shard`: the owner of the frames.
  HeldFrames(std::size_t max_bytes, std::size_t max_frames, const Shard& shard = {});

  // `share_bytes` is the sum that the caller holds already. It may hold as much as remains for all
  // others: one lossy connection gets half, n of them an equal part each and the next one as much
  // again. A held frame is never dropped to make room: it has been SACKed, and reneging costs the
  // peer a timeout (RFC 2018 section 8). kNone when the share is used up.
  std::uint32_t hold(const RxFrame& frame, SeqNum seq, std::uint32_t offset, std::uint32_t length,
                     std::size_t& share_bytes);
  // The frame came in by another queue, and as many of those as allowed are held already.
  bool has_enough_of_others(const RxFrame& frame) const {
    return is_of_others(frame) && held_of_others_ == Shard::kMostHeldOfOthers;
  }
  // The frame goes to take_released(), and its slot becomes free.
  void release(std::uint32_t piece, std::size_t& share_bytes);
  std::size_t take_released(std::span<RxFrame> out);

  // This frame's bytes are delivered from now on, and may be lent; it must not move until the next
  // show() or hide().
  void show(RxFrame& frame) {
    hide();
    shown_ = &frame;
  }
  void hide() {
    shown_ = nullptr;
    if (shown_loan_ != kNone) [[unlikely]]
      give_back(std::exchange(shown_loan_, kNone));
  }
  // Lends up to half of the bytes that are not held: the rest stays free for losses.
  std::uint32_t lend() override;
  void give_back(std::uint32_t loan) override;

  // Grants receive windows that grow beyond their first size: all together at most the bytes that
  // may be held. Returns how much of `bytes` is granted.
  std::uint32_t promise(std::uint32_t bytes) {
    const auto granted =
        static_cast<std::uint32_t>(std::min<std::size_t>(bytes, max_bytes_ - promised_bytes_));
    promised_bytes_ += granted;
    return granted;
  }
  void take_back(std::uint32_t bytes) { promised_bytes_ -= bytes; }

  // For a frame that is held; never fails.
  std::uint32_t take_range();
  void give_range(std::uint32_t range) { free_ranges_.push_back(range); }
  Range* ranges() { return ranges_.data(); }

  Piece& operator[](std::uint32_t i) { return pieces_[i]; }
  std::size_t held_bytes() const { return held_bytes_; }
  std::size_t held_frames() const { return held_frames_; }
  std::size_t lent_frames() const { return loans_.size() - free_loans_.size(); }

 private:
  struct Loan {
    RxFrame frame;
    std::uint32_t uses = 0;
  };
  // Includes released frames that were not fetched: the link does not have them back yet.
  std::size_t out_bytes() const { return held_bytes_ + lent_bytes_ + released_bytes_; }
  bool has_place() const {
    return released_.size() + held_frames_ + lent_frames() < pieces_.size();
  }
  bool is_of_others(const RxFrame& frame) const { return is_shared_ && frame.port != own_queue_; }
  void note_released(RxFrame& frame);

  std::size_t max_bytes_;
  bool is_shared_;
  std::uint8_t own_queue_;
  std::size_t held_of_others_ = 0;
  std::size_t held_bytes_ = 0;
  std::size_t held_frames_ = 0;
  std::size_t promised_bytes_ = 0;
  std::size_t released_bytes_ = 0;
  std::vector<Piece> pieces_;
  std::vector<RxFrame> released_;
  std::vector<std::uint32_t> free_;
  std::vector<Range> ranges_;
  std::vector<std::uint32_t> free_ranges_;
  RxFrame* shown_ = nullptr;
  std::uint32_t shown_loan_ = kNone;  // The loan of shown_, which counts as one use.
  std::size_t lent_bytes_ = 0;
  std::vector<Loan> loans_;
  std::vector<std::uint32_t> free_loans_;
};

}  // namespace ztcp::tcp
