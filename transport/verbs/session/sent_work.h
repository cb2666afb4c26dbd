// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The outstanding work of one queue pair, in order. Only some of it is signalled: queue pairs are
// reliable and complete in order, so a completion confirms all work before it.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>

#include "transport/verbs/session/tally.h"

namespace ztcp::verbs {

// Work requests of a session that one queue pair holds. Its send queue is deeper: probes and
// notifications need more (QueuePairs::send_depth).
inline constexpr std::uint32_t kSendDepth = 512;

// A piece of a message, or a control write.
struct Piece {
  static constexpr std::uint16_t kNobody = 0xffff;

  std::uint32_t begin = 0;
  std::uint32_t size_bytes = 0;
  std::uint16_t message = kNobody;
  std::uint8_t number = 0;
  std::uint8_t of = 1;  // Pieces of the message.
};

class SentWork {
 public:
  std::uint32_t room() const { return kSendDepth - static_cast<std::uint32_t>(next_ - oldest_); }
  bool is_empty() const { return next_ == oldest_; }
  // Any thread: bytes of messages, and completed bytes.
  std::uint64_t backlog_bytes() const { return backlog_bytes_.value(); }
  std::uint64_t carried_bytes() const { return carried_bytes_.value(); }

  // The outstanding work that was added last, and the id of its completion. Null: none.
  const Piece* newest() const { return is_empty() ? nullptr : &pieces_[(next_ - 1) % kSendDepth]; }
  std::uint64_t newest_id() const { return next_ - 1; }

  // The queue pair is gone: calls lost(piece) for all work, and forgets it.
  template <class Lost>
  void abandon(Lost&& lost) {
    for (; oldest_ != next_; ++oldest_) {
      const Piece& piece = pieces_[oldest_ % kSendDepth];
      if (piece.message != Piece::kNobody) lost(piece);
    }
    backlog_bytes_.set(0);
  }

  // The queue pair is a new one, and nothing is outstanding; totals are kept.
  void restart() {
    oldest_ = next_ = 0;
    backlog_bytes_.set(0);
  }

  // Returns the id of its completion.
  std::uint64_t add(const Piece& piece) {
    assert(room() > 0);
    pieces_[next_ % kSendDepth] = piece;
    backlog_bytes_.add(piece.size_bytes);
    return next_++;
  }

  // Calls done(piece) for all that `id` completes. False: no such work is outstanding.
  template <class Done>
  bool complete(std::uint64_t id, Done&& done) {
    if (id - oldest_ >= next_ - oldest_) return false;
    while (oldest_ <= id) {
      const Piece& piece = pieces_[oldest_++ % kSendDepth];
      backlog_bytes_.subtract(piece.size_bytes);
      carried_bytes_.add(piece.size_bytes);
      if (piece.message != Piece::kNobody) done(piece);
    }
    return true;
  }

 private:
  std::uint64_t oldest_ = 0;
  std::uint64_t next_ = 0;
  Tally backlog_bytes_;
  Tally carried_bytes_;
  std::array<Piece, kSendDepth> pieces_{};
};

}  // namespace ztcp::verbs
