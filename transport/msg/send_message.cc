// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/send_message.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ztcp::msg {

void SendMessage::start(std::span<const std::byte> bytes, std::uint32_t tag,
                        std::uint32_t memory_key) {
  assert(!is_linked());
  data_ = bytes.data();
  total_ = bytes.size();
  handed_bytes_ = 0;
  tag_ = tag;
  memory_key_ = memory_key;
  lost_units_ = 0;
  unit_ = UnitSize(total_);
  handed_out_ = false;
  stream_end_.fill(0);
}

std::uint64_t SendMessage::unit_bytes(std::uint64_t unit) const {
  return std::min(unit_.bytes(), total_ - unit_.offset(unit));
}

SendMessage::Piece SendMessage::next_lost() const {
  assert(has_lost());
  const auto begin = units_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(handed_units());
  const auto first = std::find_if(begin, end, is_lost);
  const auto last = std::find_if_not(first, end, is_lost);
  const std::uint64_t from = unit_.offset(static_cast<std::uint64_t>(first - begin));
  const std::uint64_t to = std::min(total_, unit_.offset(static_cast<std::uint64_t>(last - begin)));
  return {from, to - from};
}

std::uint64_t SendMessage::eager_bytes(Piece piece) const {
  std::uint64_t bytes = 0;
  for (std::uint64_t u = unit_.index(piece.offset), n = unit_.count(piece.size_bytes); n != 0;
       ++u, --n)
    if (units_[u] == (kLost | kEager)) bytes += unit_bytes(u);
  return bytes;
}

void SendMessage::hand_out(Piece piece, std::size_t flow, bool eager, std::uint64_t stream_end) {
  const std::uint64_t first = unit_.index(piece.offset);
  const std::uint64_t count = total_ == 0 ? 1 : unit_.count(piece.size_bytes);
  const auto owner = static_cast<std::uint8_t>((flow + 1) | (eager ? kEager : 0U));
  if (has_lost()) {
    assert(is_lost(units_[first]));
    lost_units_ -= static_cast<std::uint32_t>(count);
  } else {
    handed_bytes_ = piece.offset + piece.size_bytes;
    handed_out_ = handed_bytes_ == total_;
  }
  std::memset(&units_[first], owner, count);
  stream_end_[flow] = stream_end;
}

void SendMessage::resolve(std::size_t flow, const ChunkMap* held) {
  assert(stream_end_[flow] == kInDoubt);
  stream_end_[flow] = 0;
  for (std::uint64_t u = 0, n = handed_units(); u < n; ++u) {
    std::uint8_t& owner = units_[u];
    if ((owner & ~kEager) != flow + 1) continue;
    if (held != nullptr && (total_ == 0 || held->test(u))) {
      owner = kHeld;
      continue;
    }
    owner = static_cast<std::uint8_t>(kLost | (owner & kEager));
    ++lost_units_;
  }
}

}  // namespace ztcp::msg
