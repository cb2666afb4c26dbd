// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The rings of a running capture, mapped, and their frames in order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "tools/ztcp_stat/capture/jobs.h"
#include "transport/stats/capture_ring.h"

namespace ztcp::capture {

class Rings {
 public:
  // kProtocol: the memory is not that of a capture, or another process could take it away.
  static Result<std::unique_ptr<Rings>> map(const StartedCapture& capture);
  ~Rings();
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

  // Calls visit(frame) for each frame that is complete now, in order of time over all lanes, and
  // stops when it returns false. Of several lanes, frames later than `horizon_ns` wait for the next
  // call: another lane may still record an earlier one.
  template <class Visit>
  Status drain(std::uint64_t horizon_ns, Visit&& visit) {
    for (Lane& lane : lanes_) lane.end_bytes = lane.reader.written_bytes();
    for (;;) {
      Lane* next = nullptr;
      std::uint64_t earliest = 0;
      for (Lane& lane : lanes_) {
        const stats::CaptureReader::Frame* const frame = ZTCP_TRY(lane.reader.peek(lane.end_bytes));
        if (frame == nullptr) continue;
        const std::uint64_t time = frame->record.time_ns;
        if (lanes_.size() > 1 && time > horizon_ns) continue;
        if (next != nullptr && time >= earliest) continue;
        next = &lane;
        earliest = time;
      }
      if (next == nullptr) return {};
      const bool goes_on = visit(**next->reader.peek(next->end_bytes));
      next->reader.pop();
      if (!goes_on) return {};
    }
  }
  // Frames since the start.
  std::uint64_t recorded() const;
  std::uint64_t lost() const;

 private:
  struct Lane {
    stats::CaptureReader reader;
    std::uint64_t end_bytes = 0;
  };
  Rings(std::span<std::byte> rings, std::span<std::byte> cursors, std::size_t ring_bytes,
        std::size_t lanes);

  const std::span<std::byte> rings_;  // Mapped read-only.
  const std::span<std::byte> cursors_;
  std::vector<Lane> lanes_;
};

}  // namespace ztcp::capture
