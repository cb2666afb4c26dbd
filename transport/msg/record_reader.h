// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Cuts one direction of a byte stream, arriving in arbitrary pieces, into the preamble, records and
// pieces of chunk payload. A record is copied out first: where frames lie in memory that the peer
// shares (link/shm_link.h), the peer could change it between check and use. Payload is passed on in
// place; no decision depends on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/msg/record.h"

namespace ztcp::msg {

class RecordReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,  // The input is used up.
    kPreamble,  // version() is valid.
    kRecord,    // header() and body() are valid until the next call.
    kPayload,   // payload() is valid until the next call; the chunk may have more.
    kBadMagic,  // Not our protocol.
    kBad,       // Our magic, but an invalid record.
  };

  // Takes from the front of `input` the bytes of the next step.
  Step next(std::span<const std::byte>& input) {
    if (payload_left_ != 0) {
      if (input.empty()) return Step::kNeedMore;
      const std::size_t take = std::min<std::size_t>(payload_left_, input.size());
      payload_ = input.first(take);
      input = input.subspan(take);
      payload_left_ -= static_cast<std::uint32_t>(take);
      return Step::kPayload;
    }
    return next_record(input);
  }

  // Payload of the current chunk that is still to come; skip() tells that `bytes` of it were placed
  // directly.
  std::uint32_t payload_left() const { return payload_left_; }
  void skip(std::size_t bytes) { payload_left_ -= static_cast<std::uint32_t>(bytes); }

  std::uint32_t version() const { return version_; }
  const RecordHeader& header() const { return header_; }
  std::span<const std::byte> body() const { return body_; }
  std::span<const std::byte> payload() const { return payload_; }

 private:
  Step next_record(std::span<const std::byte>& input);
  Step read_preamble(std::span<const std::byte>& input);
  // Nearly every header and body fits in this many bytes, which are copied at once.
  static constexpr std::size_t kUsualBytes = 32;
  // Takes `wanted` bytes of `input` into held_; nullptr until they have arrived.
  const std::byte* gather(std::span<const std::byte>& input, std::size_t wanted) {
    if (held_bytes_ != 0 || input.size() < kUsualBytes || wanted > kUsualBytes) [[unlikely]]
      return gather_pieces(input, wanted);
    std::memcpy(held_.data(), input.data(), kUsualBytes);
    end_copying();
    input = input.subspan(wanted);
    return held_.data();
  }
  // Keeps the compiler from reading the original again instead of the copy.
  static void end_copying() { asm volatile("" ::: "memory"); }
  const std::byte* gather_pieces(std::span<const std::byte>& input, std::size_t wanted);

  enum class State : std::uint8_t { kPreamble, kHeader, kBody } state_ = State::kPreamble;
  std::uint32_t payload_left_ = 0;
  std::uint32_t version_ = 0;
  RecordHeader header_;
  std::span<const std::byte> body_;
  std::span<const std::byte> payload_;
  std::size_t held_bytes_ = 0;
  RecordBuffer held_;  // The current header or body, or its beginning.
};

}  // namespace ztcp::msg
