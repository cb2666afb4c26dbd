// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames with verifiable contents, for tests of links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/frame.h"

namespace ztcp::link::test {

// Byte i of frame `seed`: differs between frames, and between offsets of a frame.
inline std::byte pattern(std::uint32_t seed, std::size_t i) {
  const std::uint64_t mixed = (seed * 0x9e3779b97f4a7c15ULL) ^ (i * 0xbf58476d1ce4e5b9ULL);
  return static_cast<std::byte>(mixed >> 56 ^ mixed >> 24);
}

// A frame of `frame_bytes`; its payload lies in `fragment_count` pieces of separately allocated
// memory. The first 14 bytes are an Ethernet header of type 0x88b5 (IEEE local experiments).
class SentFrame {
 public:
  SentFrame(std::uint32_t seed, std::size_t frame_bytes, std::size_t fragment_count,
            std::uint32_t memory_key = kUnmapped)
      : bytes_(frame_bytes) {
    for (std::size_t i = 0; i < frame_bytes; ++i) bytes_[i] = pattern(seed, i);
    bytes_[12] = std::byte{0x88};
    bytes_[13] = std::byte{0xb5};
    const std::size_t header = std::min<std::size_t>(frame_bytes, fragment_count == 0 ? 128 : 54);
    std::copy_n(bytes_.begin(), header, frame_.header.begin());
    frame_.header_bytes = static_cast<std::uint16_t>(header);
    frame_.l2_bytes = 14;
    const std::size_t payload = frame_bytes - header;
    frame_.payload_bytes = static_cast<std::uint32_t>(payload);
    std::size_t at = header;
    for (std::size_t k = 0; k < fragment_count && at < frame_bytes; ++k) {
      const bool last = k + 1 == fragment_count;
      const std::size_t piece =
          last ? frame_bytes - at : std::min(frame_bytes - at, payload / fragment_count);
      if (piece == 0) continue;
      pieces_.emplace_back(bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                           bytes_.begin() + static_cast<std::ptrdiff_t>(at + piece));
      frame_.fragments[frame_.fragment_count++] = {pieces_.back().data(),
                                                   static_cast<std::uint32_t>(piece), memory_key};
      at += piece;
    }
  }

  TxFrame& frame() { return frame_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  // Overwrites the payload in place, as its owner may once the link no longer needs it.
  void scribble() {
    for (auto& piece : pieces_) std::fill(piece.begin(), piece.end(), std::byte{0xee});
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::vector<std::byte>> pieces_;
  TxFrame frame_;
};

inline std::vector<std::byte> flatten(const RxFrame& frame) {
  std::vector<std::byte> all(frame.head.begin(), frame.head.end());
  for (const auto part : frame.more) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace ztcp::link::test
