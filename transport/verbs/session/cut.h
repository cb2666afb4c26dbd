// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Cuts a message into pieces for the queue pairs of a connection, so that all would finish at the
// same time, given their backlogs and the rates of their rails. A rail that is slower than its rate
// has more backlog, and gets less. Pieces end at multiples of 128 bytes: with LL128, GPUs poll
// flags inside lines of 128 bytes, which one queue pair writes in order, and two do not.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

// A message or piece below this size does not gain from another queue pair.
inline constexpr std::uint64_t kStripedBytes = 64U << 10U;
inline constexpr std::uint64_t kLeastPieceBytes = 4U << 10U;
inline constexpr std::uint64_t kLineBytes = 128;

struct Share {
  std::uint64_t backlog_bytes = 0;
  std::uint32_t weight = 0;  // From its rate; 0: it takes nothing.
};

// Bytes for each of up to kMaxQueuePairs queue pairs.
using Cut = std::array<std::uint64_t, kMaxQueuePairs>;

// The sum is `size_bytes`. At least one share has a weight.
Cut cut(std::uint64_t size_bytes, std::span<const Share> shares);

// The queue pair that would finish first with the message added. Among equals: round-robin, the
// next one after `last`.
std::uint32_t choose(std::uint64_t size_bytes, std::span<const Share> shares, std::uint32_t last);

}  // namespace ztcp::verbs
