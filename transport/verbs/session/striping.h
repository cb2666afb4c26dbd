// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a message is cut over the queue pairs of a connection. Both ends reckon it from the size
// alone, so nothing of it travels. Pieces end on 128 bytes: LL128 has GPUs poll flags inside of
// lines of so many, which one queue pair writes in order and two do not.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ztcp::verbs {

// More than NCCL's net_ib is ever told to use, and a bit mask of the exchange's.
inline constexpr std::uint32_t kMaxQueuePairs = 8;
// Below, a second queue pair costs more than it brings.
inline constexpr std::uint64_t kStripedBytes = 64U << 10U;
inline constexpr std::uint64_t kLineBytes = 128;

// Of every piece but the last, which may be shorter.
constexpr std::uint64_t piece_bytes(std::uint64_t size_bytes, std::uint32_t queue_pairs) {
  if (queue_pairs == 1 || size_bytes < kStripedBytes) return size_bytes;
  const std::uint64_t even = (size_bytes + queue_pairs - 1) / queue_pairs;
  return (even + kLineBytes - 1) / kLineBytes * kLineBytes;
}

constexpr std::uint32_t piece_count(std::uint64_t size_bytes, std::uint32_t queue_pairs) {
  const std::uint64_t each = std::max<std::uint64_t>(1, piece_bytes(size_bytes, queue_pairs));
  return std::max(1U, static_cast<std::uint32_t>((size_bytes + each - 1) / each));
}

}  // namespace ztcp::verbs
