// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames on a bootstrap connection, and their reader. Pure. What one connection can make its reader
// keep is bounded: a header is judged before its payload is kept, and a reader with enough frames
// that nobody has taken asks for no more bytes.
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
  kHello,          // The caller's answer: which rank it is, and the proof of the secret.
  kAdmit,          // Rank 0 has taken the rank in, and proves the secret itself.
  kWelcome,        // All ranks are there.
  kRefuse,         // The caller is no rank of this run: a text says why.
  kData,
  kAbort,  // A rank has failed: a text says why.
  kAlive,
};

// In front of every frame. A stray connection is told from a rank by the magic.
struct FrameHeader {
  std::uint32_t magic;
  std::uint32_t type;
  std::uint32_t payload_bytes;
};
inline constexpr std::uint32_t kFrameMagic = 0x7a504632;  // "zPF2"
inline constexpr std::size_t kMaxPayload = std::size_t{64} << 20U;
// Of frames before a caller has been admitted: a hello is a few hundred bytes.
inline constexpr std::size_t kMaxGreeting = 4096;

struct Frame {
  FrameType type;
  Bytes payload;
};

// As it goes over the connection.
Bytes make_frame(FrameType type, std::span<const std::byte> payload);

class FrameReader {
 public:
  FrameReader() = default;
  explicit FrameReader(std::size_t max_payload) : max_payload_(max_payload) {}

  void set_max_payload(std::size_t bytes) { max_payload_ = bytes; }

  // False: these bytes are no frames, or one is longer than allowed. For good.
  bool take(std::span<const std::byte> bytes);
  bool is_malformed() const { return malformed_; }
  // No more bytes are to be read until a frame is taken out.
  bool is_full() const { return frames_.size() >= kMaxFrames; }

  const std::deque<Frame>& frames() const { return frames_; }
  Frame pop();

 private:
  // The protocol goes in lockstep: no rank is more than a few frames ahead of another.
  static constexpr std::size_t kMaxFrames = 16;

  std::size_t max_payload_ = kMaxGreeting;
  bool malformed_ = false;
  Bytes inbox_;  // Bytes that don't make a whole frame yet.
  std::deque<Frame> frames_;
};

}  // namespace ztcp::perf
