// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a device moves bulk on this machine: how many workers beside NCCL's own threads, and over how
// many flows of a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "config/machine/machine.h"
#include "config/settings.h"
#include "transport/comms/poller_policy.h"

namespace ztcp::sockets {

struct BulkPolicy {
  std::size_t workers = 0;
  std::uint32_t flows = 1;  // One for small messages and, where there are workers, others for bulk.
  std::string reason;       // Of the workers, for the init line: "16 CPUs for each of 2 ranks".
};

// The ranks of this host.
struct LocalRanks {
  std::size_t count = 1;
  std::string source;  // "LOCAL_WORLD_SIZE", "2 GPUs"; empty: nobody tells.
};
// What the launcher said, else one for each GPU.
LocalRanks local_ranks(config::Machine& machine);

struct BulkPlace {
  std::size_t devices = 1;  // Of this process.
  LocalRanks ranks{};
  std::uint32_t speed_mbps = 0;  // Of the interface; 0: not known.
};
BulkPolicy choose_bulk(const config::Fabric& fabric, const comms::CpuView& cpus,
                       const BulkPlace& place);

}  // namespace ztcp::sockets
