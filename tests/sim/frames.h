// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frames as owned bytes: a TxFrame as it is on the cable, after a NIC has filled in its checksums
// and cut its super-segments.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/frame.h"

namespace ztcp::sim {

using Bytes = std::vector<std::byte>;

// One frame, or one per segment of a super-segment.
std::vector<Bytes> put_on_cable(const TxFrame& frame);

// Received memory that lives until the frame is given back. `pieces` > 1 spreads the payload over
// that many buffers, as drivers with small buffers do; all headers stay in the first.
class ReceivedFrame {
 public:
  explicit ReceivedFrame(Bytes bytes, std::size_t pieces = 1, bool checksum_good = false);
  ReceivedFrame(const ReceivedFrame&) = delete;
  ReceivedFrame& operator=(const ReceivedFrame&) = delete;

  // The view's handle is `this`.
  RxFrame view();

 private:
  Bytes bytes_;
  std::vector<std::span<const std::byte>> pieces_;
  bool checksum_good_;
};

// `size` bytes that differ at every position, so that a byte in the wrong place shows.
Bytes pattern(std::size_t size, std::uint64_t seed = 1);

}  // namespace ztcp::sim
