// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames on a bootstrap connection, and their reader. Pure. Memory per connection is bounded: a
// header is checked before its payload is stored, and a reader with enough unread frames accepts no
// more bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace ztcp::perf {

using Bytes = std::vector<std::byte>;

enum class FrameType : std::uint32_t {
  kChallenge = 1,  // Rank 0 to a caller: a nonce.
  kHello,          // The caller's answer: its rank and its proof of the secret.
  kAdmit,          // Rank 0 admits the rank, and proves the secret itself.
  kWelcome,        // All ranks are connected.
  kRefuse,         // The caller is not a rank of this run: a text with the reason.
  kData,
  kAbort,  // A rank has failed: a text with the reason.
  kAlive,
};

// Precedes every frame. The magic distinguishes ranks from stray connections.
struct FrameHeader {
  std::uint32_t magic;
  std::uint32_t type;
  std::uint32_t payload_bytes;
};
inline constexpr std::uint32_t kFrameMagic = 0x7a504632;  // "zPF2"
inline constexpr std::size_t kMaxPayload = std::size_t{64} << 20U;
// Limit of frames before a caller is admitted: a hello has a few hundred bytes.
inline constexpr std::size_t kMaxGreeting = 4096;

struct Frame {
  FrameType type;
  Bytes payload;
};

// Encodes a frame.
Bytes make_frame(FrameType type, std::span<const std::byte> payload);

class FrameReader {
 public:
  FrameReader() = default;
  explicit FrameReader(std::size_t max_payload) : max_payload_(max_payload) {}

  void set_max_payload(std::size_t bytes) { max_payload_ = bytes; }

  // False, permanently: these bytes are not frames, or one is longer than allowed.
  bool take(std::span<const std::byte> bytes);
  bool is_malformed() const { return malformed_; }
  // Do not read more bytes until a frame is taken out.
  bool is_full() const { return frames_.size() >= kMaxFrames; }

  const std::deque<Frame>& frames() const { return frames_; }
  Frame pop();

 private:
  // The protocol is in lockstep: no rank is more than a few frames ahead of another.
  static constexpr std::size_t kMaxFrames = 16;

  std::size_t max_payload_ = kMaxGreeting;
  bool malformed_ = false;
  Bytes inbox_;  // An incomplete frame.
  std::deque<Frame> frames_;
};

}  // namespace ztcp::perf
