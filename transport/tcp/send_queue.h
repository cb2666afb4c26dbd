// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bytes that the user wrote and the peer has not acknowledged: a ring of pieces in stream order,
// each pointing at user memory or into a ring of copied bytes. Positions are offsets from the
// stream's beginning and never wrap. Memory belongs to the Stack; owned by a Sender.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/frame.h"
#include "core/stream.h"

namespace ztcp::tcp {

class SendQueue {
 public:
  struct Piece {
    std::uint64_t begin = 0;
    const std::byte* data = nullptr;
    std::uint32_t size_bytes = 0;
    std::uint32_t memory_key = kUnmapped;
  };
  struct Gathered {
    std::uint32_t bytes = 0;
    std::uint8_t count = 0;
  };

  // Both sizes are powers of two; the memory must outlive this.
  SendQueue(std::span<Piece> pieces, std::span<std::byte> copied)
      : pieces_(pieces.data()),
        copied_(copied.data()),
        piece_mask_(static_cast<std::uint32_t>(pieces.size() - 1)),
        copied_mask_(static_cast<std::uint32_t>(copied.size() - 1)) {
    assert((pieces.size() & (pieces.size() - 1)) == 0);
    assert((copied.size() & (copied.size() - 1)) == 0);
  }

  void reset();

  std::uint64_t begin() const { return begin_; }  // The oldest unacknowledged byte.
  std::uint64_t end() const { return end_; }      // One past the last byte written.
  std::uint64_t size_bytes() const { return end_ - begin_; }

  // Any write() that Stream allows fits.
  bool has_room() const {
    return piece_space() >= 2 + Stream::kMaxReferenced && copied_space() >= Stream::kMaxCopiedBytes;
  }
  // All or nothing.
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced);

  // Returns the bytes [offset, offset + want_bytes) as fragments; fewer bytes when `out` is too
  // short. `offset` is in [begin(), end()) and the range ends by end().
  Gathered gather(std::uint64_t offset, std::uint32_t want_bytes, std::span<Fragment> out);

  // Everything before `offset` has been acknowledged.
  void pop(std::uint64_t offset);

 private:
  std::uint32_t piece_space() const { return piece_mask_ + 1 - (tail_ - head_); }
  std::uint32_t copied_space() const { return copied_mask_ + 1 - (copied_tail_ - copied_head_); }
  bool is_copied(const Piece& piece) const {
    return piece.data >= copied_ && piece.data <= copied_ + copied_mask_;
  }
  void push(const std::byte* data, std::uint32_t size_bytes, std::uint32_t key);
  void copy(std::span<const std::byte> bytes);
  std::uint32_t find(std::uint64_t offset) const;

  Piece* pieces_;
  std::byte* copied_;
  std::uint32_t piece_mask_;
  std::uint32_t copied_mask_;
  std::uint32_t head_ = 0;  // Free-running, like the three below.
  std::uint32_t tail_ = 0;
  std::uint32_t copied_head_ = 0;
  std::uint32_t copied_tail_ = 0;
  std::uint32_t cursor_ = 0;  // The piece that holds the byte after the last gathered one.
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace ztcp::tcp
