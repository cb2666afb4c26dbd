// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// From the stack to the link: asks what the link has room for, has the stack make that many frames
// and no more, and keeps what the link refused all the same until it takes it. A frame that was
// made counts as sent, so none is ever dropped here: a repeat that is lost before it leaves costs
// a timeout.
//
// A value: told the time, no clock, no thread. Owned by a Poller, used with the baton held.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/core/clock.h"
#include "transport/core/frame.h"
#include "transport/link/link.h"
#include "transport/ustack/engine/queue_limit.h"

namespace ztcp::ustack {

class Transmitter {
 public:
  static constexpr std::size_t kBurst = 32;
  // In a turn: bounds the time until it receives again.
  static constexpr std::size_t kFramesPerTurn = 4 * kBurst;

  // Frames carry so many bytes at most, behind their headers.
  explicit Transmitter(std::uint32_t largest_payload_bytes);

  // Sends the frames of `source`, a Stack or anything with its collect(). True when a frame left.
  template <class Source>
  bool run(Source& source, link::Link& link, TimePoint now) {
    link::TransmitRoom room = link.transmit_room(now);
    bool any = false;
    if (!is_empty()) {
      any = offer(link);
      if (!is_empty()) return any;
      room = link.transmit_room(now);  // What waited has taken of it.
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

  // Copies the payload of what waits here, since its owner may have it back now.
  void detach_payload();

  // Turns that ended with frames which the link refused.
  std::uint64_t refusals() const { return refusals_; }
  const QueueLimit& limit() const { return limit_; }

 private:
  static_assert(kBurst <= 32, "a bit each");
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
  // Of kBurst of the largest frames; not touched before a link refuses one whose payload must go.
  std::unique_ptr<std::byte[]> payload_;
  std::uint64_t refusals_ = 0;
};

}  // namespace ztcp::ustack
