// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a device moves bulk on this machine: how many queues it has, each with a thread that carries
// its connections while there is much to move; as how many devices NCCL is shown it, each of which
// it opens channels for; how many workers there are beside the queues, who do the system calls of
// large pieces; and over how many flows of a connection.
//
// Where NCCL is shown several devices, its connections are many, and a queue to each of a few is
// all it takes: what a thread receives it also hands on, in its own cache. Where it is shown one
// (the config says so, or nobody tells NCCL how many channels a size is worth, or CPUs are few), a
// connection alone must fill the interface, and workers and flows share its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "config/machine/machine.h"
#include "config/settings.h"
#include "transport/comms/poller_policy.h"

namespace ztcp::sockets {

struct BulkPolicy {
  std::size_t queues = 1;
  bool takes_over = false;  // Their threads do: there are CPUs for them.
  std::size_t workers = 0;  // Of all queues together.
  std::uint32_t flows = 1;  // One for small messages and, where there are workers, others for bulk.
  std::size_t views = 1;    // As so many NCCL is shown it.
  std::string reason;       // For the init line: "16 CPUs for each of 2 ranks".
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
  std::uint32_t views = 0;       // As the config says; 0: as the queues allow.
};
// Of the queue's own.
constexpr std::size_t workers_of(const BulkPolicy& policy, std::size_t queue) {
  return policy.workers / policy.queues + (queue < policy.workers % policy.queues ? 1 : 0);
}
// Who runs the turns, for the init line.
constexpr const char* turns_text(const BulkPolicy& policy, bool is_dedicated) {
  if (is_dedicated) return "a thread of its own";
  return policy.takes_over ? "in NCCL's threads, bulk in its own" : "in NCCL's threads";
}
BulkPolicy choose_bulk(const config::Fabric& fabric, const comms::CpuView& cpus,
                       const BulkPlace& place);

}  // namespace ztcp::sockets
