// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A connection goes over one rail, a pair of devices, or over several: then each message is cut
// among them. Every rail's device has keys of its own for the same memory.
#pragma once

#include <array>
#include <cstdint>

namespace ztcp::verbs {

// As many as NCCL ever merges (v12).
inline constexpr std::uint32_t kMaxRails = 8;

// Keys of one memory, by rail.
using RailKeys = std::array<std::uint32_t, kMaxRails>;

// For all rails of a connection together: more than NCCL's net_ib is ever set to, and as many as
// fit into the bit mask of a message's pieces.
inline constexpr std::uint32_t kMaxQueuePairs = 8;

}  // namespace ztcp::verbs
