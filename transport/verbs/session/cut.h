// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a message is cut over the queue pairs of a connection: so that, by what each has to do
// already and by the rate of its rail, all would be through at the same time. A rail that is slower
// than it says keeps more of what it was given, and is given less. Pieces end on 128 bytes: LL128
// has GPUs poll flags inside of lines of so many, which one queue pair writes in order and two do
// not.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

// Below, a second queue pair costs more than it brings; and so does a piece of less.
inline constexpr std::uint64_t kStripedBytes = 64U << 10U;
inline constexpr std::uint64_t kLeastPieceBytes = 4U << 10U;
inline constexpr std::uint64_t kLineBytes = 128;

struct Share {
  std::uint64_t backlog_bytes = 0;
  std::uint32_t weight = 0;  // Of its rate; 0: it takes nothing.
};

// Bytes for each of up to kMaxQueuePairs.
using Cut = std::array<std::uint64_t, kMaxQueuePairs>;

// For all together `size_bytes`. One share at least has a weight.
Cut cut(std::uint64_t size_bytes, std::span<const Share> shares);

// Who would be first through with it all. Among equals the one after `last`, in their circle.
std::uint32_t choose(std::uint64_t size_bytes, std::span<const Share> shares, std::uint32_t last);

}  // namespace ztcp::verbs
