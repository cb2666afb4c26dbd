// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The bytes that a stream has still to give to the kernel, in order: copies, in a ring, and pieces
// of the user's memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <sys/uio.h>

#include "core/frame.h"
#include "core/stream.h"

namespace ztcp::sockets {

class TxQueue {
 public:
  static constexpr std::size_t kPieces = 128;
  static constexpr std::size_t kCopyBytes = 32U << 10;

  bool empty() const { return first_ == end_; }
  std::size_t bytes() const { return bytes_; }
  // The next push() will succeed, however large it is.
  bool has_room() const {
    // Twice, because a copy that does not fit before the ring's end is put at its start.
    return kPieces - (end_ - first_) > Stream::kMaxReferenced &&
           kCopyBytes - (copied_ - freed_) >= 2 * Stream::kMaxCopiedBytes;
  }

  // Takes all or nothing. False: there is no room.
  bool push(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
    if (!has_room()) return false;
    if (!copied.empty()) push_copy(copied);
    for (const Fragment& fragment : referenced) {
      if (fragment.size_bytes == 0) continue;
      piece(end_++) = {fragment.data, fragment.size_bytes, copied_};
      bytes_ += fragment.size_bytes;
    }
    return true;
  }

  // Fills `out` with the next bytes, at most `most` of them. Returns the number of vectors.
  std::size_t gather(std::span<iovec> out, std::size_t most) const {
    std::size_t count = 0;
    for (std::uint32_t i = first_; i != end_ && count < out.size() && most != 0; ++i, ++count) {
      const Piece& next = piece(i);
      const std::size_t size = std::min<std::size_t>(next.size_bytes, most);
      // sendmsg() does not write there.
      out[count] = {const_cast<std::byte*>(next.data), size};
      most -= size;
    }
    return count;
  }

  // Removes bytes that the kernel has taken.
  void pop(std::size_t bytes) {
    bytes_ -= bytes;
    while (bytes != 0) {
      Piece& next = piece(first_);
      if (bytes < next.size_bytes) {
        next.data += bytes;
        next.size_bytes -= static_cast<std::uint32_t>(bytes);
        return;
      }
      bytes -= next.size_bytes;
      freed_ = next.copied_end;
      ++first_;
    }
  }

  void clear() {
    first_ = end_;
    freed_ = copied_;
    bytes_ = 0;
  }

 private:
  struct Piece {
    const std::byte* data;
    std::uint32_t size_bytes;
    std::uint64_t copied_end;  // freed_ once the piece is gone.
  };

  Piece& piece(std::uint32_t i) { return pieces_[i % kPieces]; }
  const Piece& piece(std::uint32_t i) const { return pieces_[i % kPieces]; }

  void push_copy(std::span<const std::byte> bytes) {
    std::size_t at = copied_ % kCopyBytes;
    if (kCopyBytes - at < bytes.size()) {
      copied_ += kCopyBytes - at;
      at = 0;
    }
    std::byte* const to = copy_.get() + at;
    std::memcpy(to, bytes.data(), bytes.size());
    copied_ += bytes.size();
    bytes_ += bytes.size();
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (!empty() && piece(end_ - 1).data + piece(end_ - 1).size_bytes == to) {
      piece(end_ - 1).size_bytes += size;  // So that small messages leave in one piece.
      piece(end_ - 1).copied_end = copied_;
    } else {
      piece(end_++) = {to, size, copied_};
    }
  }

  std::uint32_t first_ = 0;  // First and end of the pieces; both wrap around.
  std::uint32_t end_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t copied_ = 0;  // Bytes of the ring used so far; modulo kCopyBytes: the next place.
  std::uint64_t freed_ = 0;   // Bytes of the ring freed so far.
  // Allocated here, so that a lack of memory is found when the stream is made. Untouched until
  // used.
  const std::unique_ptr<std::byte[]> copy_{new std::byte[kCopyBytes]};
  std::array<Piece, kPieces> pieces_;
};

}  // namespace ztcp::sockets
