// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ztcp::comms {

// Receives of several buffers, which NCCL posts when its channels share a connection.
struct GroupCounts {
  std::uint64_t posted = 0;
  std::uint64_t largest = 0;  // Number of buffers of the largest one.

  void note(std::size_t buffers) {
    ++posted;
    largest = std::max<std::uint64_t>(largest, buffers);
  }
};

}  // namespace ztcp::comms
