// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The part of a NIC that one of several processes has: every count-th receive queue, and a
// listening port of its own. A process that has the NIC to itself has slot 0 of 1.
#pragma once

#include <cstdint>

namespace ztcp {

struct NicSlot {
  std::uint16_t index = 0;
  std::uint16_t count = 1;

  bool is_shared() const { return count > 1; }
  bool has_queue(std::uint32_t queue) const { return queue % count == index; }
  // Number of them, where the NIC has `all`.
  std::uint32_t queues(std::uint32_t all) const {
    return all <= index ? 0 : (all - 1 - index) / count + 1;
  }
  // `first`: that of slot 0.
  std::uint16_t listen_port(std::uint16_t first) const {
    return static_cast<std::uint16_t>(first + index);
  }
  friend bool operator==(const NicSlot&, const NicSlot&) = default;
};

}  // namespace ztcp
