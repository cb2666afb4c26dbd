// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ztcp::comms {

// Receives of several buffers: NCCL shares connections.
struct GroupCounts {
  std::uint64_t posted = 0;
  std::uint64_t largest = 0;  // Its buffers.

  void note(std::size_t buffers) {
    ++posted;
    largest = std::max<std::uint64_t>(largest, buffers);
  }
};

}  // namespace ztcp::comms
