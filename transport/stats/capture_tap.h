// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The place in a link where frames can be captured: writes the frames of each burst to the captures
// that are attached. Without a capture the lane tests one value for each burst.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/frame.h"
#include "transport/stats/capture_ring.h"

namespace ztcp::stats {

// Captures of one process at once.
inline constexpr std::size_t kMostCaptures = 2;

class CaptureTap {
 public:
  // --- The lane: one thread at a time ------------------------------------------------------------
  void received(std::span<const RxFrame> frames) {
    if (attached_.load(std::memory_order_relaxed) != 0 && !frames.empty()) [[unlikely]]
      record_received(frames);
  }
  // Called before the payload of these frames may change.
  void sent(std::span<const TxFrame> frames) {
    if (attached_.load(std::memory_order_relaxed) != 0 && !frames.empty()) [[unlikely]]
      record_sent(frames);
  }

  // --- The thread that serves captures -----------------------------------------------------------
  // The writer is the lane's until detach(). False: kMostCaptures are attached.
  bool attach(CaptureWriter& writer);
  // Waits until the lane has left the writer: for the rest of a burst.
  void detach(CaptureWriter& writer);

 private:
  void record_received(std::span<const RxFrame> frames);
  void record_sent(std::span<const TxFrame> frames);
  template <class Write>
  void for_each_writer(Write&& write);

  std::atomic<std::uint32_t> attached_{0};
  std::atomic<std::uint32_t> uses_{0};  // Odd while the lane uses writers.
  std::array<std::atomic<CaptureWriter*>, kMostCaptures> writers_{};
};

}  // namespace ztcp::stats
