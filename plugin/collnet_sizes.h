// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sizes of an all-reduce for which CollNet was measured to be faster than NCCL's other algorithms
// over ztcp (bench/results/collnet.md). ChannelTuner offers CollNet to NCCL for these, and for no
// others.
//
// All ranks must choose alike, or they wait for each other for ever. So hosts with different tables
// refuse each other when a CollNet group connects (CollHello), and NCCL then has no CollNet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/reduce/segment.h"
#include "transport/transport.h"

namespace ztcp::plugin {

struct CollnetSizes {
  TransportKind network;
  reduce::Wire wire;
  std::size_t ranks;
  std::size_t hosts;
  std::size_t least_bytes;
  std::size_t most_bytes;
};

// Around each size that was measured, half the way to those at which CollNet was slower.
inline constexpr std::array kCollnetSizes = {
    CollnetSizes{TransportKind::kSockets, reduce::Wire::kBfloat16, 2, 2, 64U << 10U, 128U << 10U},
    CollnetSizes{TransportKind::kSockets, reduce::Wire::kBfloat16, 2, 2, 2U << 20U, SIZE_MAX},
};

// FNV-1a over the table.
inline constexpr std::uint32_t kCollnetSizesDigest = [] {
  std::uint32_t digest = 0x811c'9dc5;
  for (const CollnetSizes& row : kCollnetSizes)
    for (const std::size_t value :
         {static_cast<std::size_t>(row.network), static_cast<std::size_t>(row.wire), row.ranks,
          row.hosts, row.least_bytes, row.most_bytes})
      for (unsigned shift = 0; shift < 64; shift += 8)
        digest = (digest ^ static_cast<std::uint8_t>(value >> shift)) * 0x0100'0193U;
  return digest;
}();

}  // namespace ztcp::plugin
