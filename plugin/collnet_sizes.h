// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sizes of an all-reduce for which CollNet was measured to be faster than NCCL's other algorithms
// over ztcp (bench/results/collnet.md), up to which speed of a host's NICs. ChannelTuner offers
// CollNet to NCCL for these, and for no others.
//
// The speed is the sum over a host's NICs, because NCCL's other algorithms use all NICs near a GPU,
// and a CollNet group uses one. Each counts as NCCL is told: by the config, else the kernel; a NIC
// of unknown speed counts config::kGuessedSpeedMbps. It is nominal: the kernel says 10000 of each
// veth pair, also where another speed is set by tc.
//
// All ranks must choose alike, or they wait for each other for ever:
//   - Hosts for which different rows hold (another speed, table or form of sums) refuse each other
//     when a CollNet group connects (CollHello). Each host is compared with all, so each refuses at
//     least one: NCCL compares the outcomes of the ranks of one host only.
//   - NCCL connects the group when it makes the communicator, before it asks the tuner. That holds
//     for NCCL_RUNTIME_CONNECT, too, which delays only CollNet's connections inside a host. A child
//     communicator takes its parent's group only if its ranks are in it.
//   - After a refusal NCCL gives the tuner no cost of CollNet (-1), and the tuner prefers no
//     algorithm without a cost. So the answers of each host are those without CollNet.
//   - If one host's connect succeeds and another's fails, NCCL hangs whatever the tuner does: the
//     first goes on connecting channels. So a connect succeeds on all hosts or on none
//     (CollMeeting::confirm()).
//   - Ranks that have no NIC of their own for CollNet are not compared with another host's. So each
//     row is for one rank a host.
// Read in NCCL 2.22.3, 2.24.3, 2.28.9 and 2.30.7: ncclCollNetSetup (transport/coll_net.cc),
// ncclTransportCollNetCheck (transport.cc), initTransportsRank (init.cc), updateCollCostTable
// (enqueue.cc).
//
// Threads: any. All of it is pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "transport/reduce/segment.h"
#include "transport/transport.h"

namespace ztcp::plugin {

struct CollnetSizes {
  TransportKind network;
  reduce::Wire wire;
  std::uint32_t most_speed_mbps;
  std::size_t ranks;
  std::size_t hosts;
  std::size_t least_bytes;
  std::size_t most_bytes;
};

// A bound is a measured size at which CollNet was faster, or lies between one and a size at which
// it was slower. For one number of hosts and form of sums the sizes ascend.
inline constexpr std::array kCollnetSizes = {
    CollnetSizes{TransportKind::kSockets, reduce::Wire::kBfloat16, 100'000, 2, 2, 64U << 10U,
                 128U << 10U},
    CollnetSizes{TransportKind::kSockets, reduce::Wire::kBfloat16, 25'000, 2, 2, 1U << 20U,
                 SIZE_MAX},
    CollnetSizes{TransportKind::kSockets, reduce::Wire::kBfloat16, 50'000, 2, 2, 8U << 20U,
                 SIZE_MAX},
    CollnetSizes{TransportKind::kSockets, reduce::Wire::kFloat8, 25'000, 2, 2, 2U << 20U, SIZE_MAX},
    CollnetSizes{TransportKind::kSockets, reduce::Wire::kFloat8, 50'000, 2, 2, 8U << 20U, SIZE_MAX},
};
static_assert(std::ranges::all_of(kCollnetSizes,
                                  [](const CollnetSizes& row) { return row.ranks == row.hosts; }));

// FNV-1a over the table.
inline constexpr std::uint32_t kCollnetSizesDigest = [] {
  std::uint32_t digest = 0x811c'9dc5;
  for (const CollnetSizes& row : kCollnetSizes)
    for (const std::size_t value :
         {static_cast<std::size_t>(row.network), static_cast<std::size_t>(row.wire),
          std::size_t{row.most_speed_mbps}, row.ranks, row.hosts, row.least_bytes, row.most_bytes})
      for (unsigned shift = 0; shift < 64; shift += 8)
        digest = (digest ^ static_cast<std::uint8_t>(value >> shift)) * 0x0100'0193U;
  return digest;
}();

// The rows that hold for a host: bit i is row i.
using CollnetRows = std::uint32_t;
static_assert(kCollnetSizes.size() <= 32);

// `network`: whose channels this library chooses; empty: none's, and no row holds.
CollnetRows collnet_rows(std::optional<TransportKind> network, reduce::Wire wire,
                         std::uint32_t speed_mbps);
bool have_size(CollnetRows rows, std::size_t ranks, std::size_t hosts, std::size_t bytes);
// The greatest speed at which a row holds; 0: at none.
std::uint32_t most_collnet_speed_mbps(TransportKind network, reduce::Wire wire);
// "64 KiB to 128 KiB, 2 MiB and more between 2 hosts with a rank each".
std::string sizes_text(CollnetRows rows);

}  // namespace ztcp::plugin
