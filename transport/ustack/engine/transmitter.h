// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Moves frames from the stack to the link: asks the link for its room, lets the stack make at most
// that many frames, and keeps frames that the link still refused until it accepts them. The stack
// counts a frame that it made as sent, so none is ever dropped here: a retransmission lost before
// it leaves would cost a timeout.
//
// A value: time is an argument; no clock, no thread. Owned by an Engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/clock.h"
#include "core/frame.h"
#include "transport/link/link.h"
#include "transport/ustack/engine/queue_limit.h"

namespace ztcp::ustack {

class Transmitter {
 public:
  static constexpr std::size_t kBurst = 32;
  // Limits a turn, so that the engine soon receives again.
  static constexpr std::size_t kFramesPerTurn = 4 * kBurst;

  // `largest_payload_bytes`: the most that a frame carries behind its header.
  explicit Transmitter(std::uint32_t largest_payload_bytes);

  // Sends the frames that `source` makes: a Stack, or anything with its collect(). True when a
  // frame was sent.
  template <class Source>
  bool run(Source& source, link::Link& link, TimePoint now) {
    link::TransmitRoom room = link.transmit_room(now);
    bool any = false;
    if (!is_empty()) {
      any = offer(link);
      if (!is_empty()) return any;
      room = link.transmit_room(now);  // The frames kept from earlier turns used some of it.
    }
    Allowance left = allow(now, room);
    bool exhausted = false;
    while (!exhausted && left.frames > 0 && left.bytes > 0) {
      while (!exhausted && last_ < kBurst && left.frames > 0 && left.bytes > 0) {
        const std::size_t want = next_batch(left);
        const std::size_t got = source.collect(now, std::span(frames_).subspan(last_, want));
        exhausted = got < want;
        add(got, left);
      }
      if (is_empty()) return any;
      any |= offer(link);
      if (!is_empty()) return any;
    }
    if (left.bytes == 0) limit_.note_held_back();
    return any;
  }

  // Copies the payload of the frames kept here, since its memory may go back to its owner now.
  void detach_payload();

  // Number of turns that ended with frames which the link refused.
  std::uint64_t refusals() const { return refusals_; }
  const QueueLimit& limit() const { return limit_; }

 private:
  static_assert(kBurst <= 32, "detached_ has a bit for each frame");
  static constexpr std::uint64_t kUnlimited = UINT64_MAX;
  struct Allowance {
    std::size_t frames;
    std::uint64_t bytes;
  };

  bool is_empty() const { return first_ == last_; }
  Allowance allow(TimePoint now, const link::TransmitRoom& room);
  std::size_t next_batch(const Allowance& left) const;
  void add(std::size_t count, Allowance& left);
  bool offer(link::Link& link);
  void detach(std::size_t i);

  const std::uint32_t largest_frame_bytes_;
  QueueLimit limit_;
  std::array<TxFrame, kBurst> frames_{};
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  std::uint32_t detached_ = 0;  // A bit for each frame whose payload is a copy here.
  // Room for the payload of kBurst frames of the largest size. Not touched, so not resident, before
  // a payload must be copied.
  std::unique_ptr<std::byte[]> payload_;
  std::uint64_t refusals_ = 0;
};

}  // namespace ztcp::ustack
