// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/send_queue.h"

#include <algorithm>
#include <cstring>

namespace ztcp::tcp {

void SendQueue::reset() {
  head_ = tail_ = copied_head_ = copied_tail_ = cursor_ = 0;
  begin_ = end_ = 0;
}

bool SendQueue::write(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
  assert(copied.size() <= Stream::kMaxCopiedBytes && referenced.size() <= Stream::kMaxReferenced);
  // Copied bytes make two pieces where their ring wraps.
  if (piece_space() < 2 + referenced.size() || copied_space() < copied.size()) return false;
  copy(copied);
  for (const Fragment& fragment : referenced)
    if (fragment.size_bytes > 0) push(fragment.data, fragment.size_bytes, fragment.memory_key);
  return true;
}

void SendQueue::push(const std::byte* data, std::uint32_t size_bytes, std::uint32_t key) {
  pieces_[tail_++ & piece_mask_] = {end_, data, size_bytes, key};
  end_ += size_bytes;
}

void SendQueue::copy(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::uint32_t at = copied_tail_ & copied_mask_;
    const auto size =
        static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), copied_mask_ + 1 - at));
    std::memcpy(copied_ + at, bytes.data(), size);
    copied_tail_ += size;
    // Adjacent records share one piece; otherwise small messages would use up the ring and the
    // fragments.
    Piece* last = head_ == tail_ ? nullptr : &pieces_[(tail_ - 1) & piece_mask_];
    if (last != nullptr && last->memory_key == kUnmapped && is_copied(*last) &&
        last->data + last->size_bytes == copied_ + at) {
      last->size_bytes += size;
      end_ += size;
    } else {
      push(copied_ + at, size, kUnmapped);
    }
    bytes = bytes.subspan(size);
  }
}

std::uint32_t SendQueue::find(std::uint64_t offset) const {
  const Piece& hint = pieces_[cursor_ & piece_mask_];
  if (cursor_ != tail_ && hint.begin <= offset && offset < hint.begin + hint.size_bytes)
    return cursor_;
  std::uint32_t low = 0;
  std::uint32_t high = tail_ - head_;
  while (high - low > 1) {  // Finds the last piece that begins at or before offset.
    const std::uint32_t middle = low + (high - low) / 2;
    if (pieces_[(head_ + middle) & piece_mask_].begin <= offset)
      low = middle;
    else
      high = middle;
  }
  return head_ + low;
}

SendQueue::Gathered SendQueue::gather(std::uint64_t offset, std::uint32_t want_bytes,
                                      std::span<Fragment> out) {
  assert(offset >= begin_ && offset + want_bytes <= end_);
  Gathered gathered;
  std::uint32_t at = find(offset);
  while (gathered.bytes < want_bytes && gathered.count < out.size()) {
    const Piece& piece = pieces_[at & piece_mask_];
    const auto skip = static_cast<std::uint32_t>(offset - piece.begin);
    const std::uint32_t size = std::min(piece.size_bytes - skip, want_bytes - gathered.bytes);
    out[gathered.count++] = {piece.data + skip, size, piece.memory_key};
    gathered.bytes += size;
    offset += size;
    if (skip + size == piece.size_bytes) ++at;
  }
  cursor_ = at;
  return gathered;
}

void SendQueue::pop(std::uint64_t offset) {
  assert(offset >= begin_ && offset <= end_);
  begin_ = offset;
  while (head_ != tail_) {
    Piece& piece = pieces_[head_ & piece_mask_];
    if (piece.begin + piece.size_bytes > offset) {
      // One piece may hold many records: its acknowledged part becomes room for new ones.
      const auto gone = static_cast<std::uint32_t>(offset - piece.begin);
      if (gone > 0 && is_copied(piece)) {
        copied_head_ += gone;
        piece.begin = offset;
        piece.data += gone;
        piece.size_bytes -= gone;
      }
      break;
    }
    if (is_copied(piece)) copied_head_ += piece.size_bytes;
    ++head_;
  }
  if (static_cast<std::int32_t>(cursor_ - head_) < 0) cursor_ = head_;
}

}  // namespace ztcp::tcp
