// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames in flight: put with their arrival times, taken in that order (in the order put for equal
// times).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "tools/ztcp_switch/frame_store.h"

namespace ztcp::fabric {

class DelayLine {
 public:
  void put(TimePoint arrives, StoredFrame&& frame) {
    held_bytes_ += frame.size_bytes();
    heap_.push_back({arrives, next_serial_++, std::move(frame)});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  TimePoint next_arrival() const { return heap_.empty() ? kNever : heap_.front().arrives; }
  std::uint64_t held_bytes() const { return held_bytes_; }
  // Requires that next_arrival() is not kNever.
  StoredFrame take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    StoredFrame frame = std::move(heap_.back().frame);
    heap_.pop_back();
    held_bytes_ -= frame.size_bytes();
    return frame;
  }

 private:
  struct Held {
    TimePoint arrives;
    std::uint64_t serial;
    StoredFrame frame;
  };
  struct Later {
    bool operator()(const Held& a, const Held& b) const {
      return a.arrives != b.arrives ? a.arrives > b.arrives : a.serial > b.serial;
    }
  };
  std::vector<Held> heap_;
  std::uint64_t next_serial_ = 0;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace ztcp::fabric
