// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ztcp::perf {

Bytes make_frame(FrameType type, std::span<const std::byte> payload) {
  const FrameHeader header{kFrameMagic, static_cast<std::uint32_t>(type),
                           static_cast<std::uint32_t>(payload.size())};
  Bytes frame(sizeof header + payload.size());
  std::memcpy(frame.data(), &header, sizeof header);
  std::ranges::copy(payload, frame.begin() + sizeof header);
  return frame;
}

bool FrameReader::take(std::span<const std::byte> bytes) {
  if (malformed_) return false;
  inbox_.insert(inbox_.end(), bytes.begin(), bytes.end());
  std::size_t used = 0;
  while (inbox_.size() - used >= sizeof(FrameHeader)) {
    FrameHeader header;
    std::memcpy(&header, inbox_.data() + used, sizeof header);
    if (header.magic != kFrameMagic || header.payload_bytes > max_payload_) {
      malformed_ = true;
      inbox_ = {};
      return false;
    }
    if (inbox_.size() - used - sizeof header < header.payload_bytes) break;
    const auto begin = inbox_.begin() + static_cast<std::ptrdiff_t>(used + sizeof header);
    if (const auto type = static_cast<FrameType>(header.type); type != FrameType::kAlive)
      frames_.push_back({type, Bytes(begin, begin + header.payload_bytes)});
    used += sizeof header + header.payload_bytes;
  }
  inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(used));
  return true;
}

Frame FrameReader::pop() {
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

}  // namespace ztcp::perf
