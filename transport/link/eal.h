// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DPDK's environment abstraction layer, started once per process and kept until the process ends.
// EAL can neither be started twice nor be configured later, so the first caller decides: plain
// memory for memif, hugepages for NICs. It is started on a thread of its own, because
// rte_eal_init() pins its caller, with all signals blocked. Nothing it says reaches stdout,
// stderr or syslog: its warnings go to core/log, the rest only when ZTCP_DPDK_LOG is set.
//
// Any thread may call these.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "transport/core/result.h"

namespace ztcp::link {

enum class EalMemory : std::uint8_t {
  kPlain,      // 4 KiB pages, nothing shared: memif and tests, no privilege.
  kHugepages,  // Anonymous hugepages, all reserved at the start.
};

enum class IovaMode : std::uint8_t {
  kVirtual,   // Host class A, and always with plain memory.
  kPhysical,  // Host class B: vfio without an IOMMU.
};

struct EalConfig {
  EalMemory memory = EalMemory::kPlain;
  IovaMode iova = IovaMode::kVirtual;
  // For frames and queues. Plain memory uses the sum and touches pages as they are used;
  // hugepages are taken per NUMA node (index), all of them now.
  std::vector<std::uint32_t> node_memory_mib = {128};
};

// Starts EAL, or answers for the start that has been: success when it has the same kind of memory
// (its size is what the first caller asked for), kBusy when it has the other kind, and the first
// failure again when it had failed. What was taken is logged here, by NUMA node, and so is a
// failure, with the command that mends it.
Status start_eal(const EalConfig& config);

// Runs `task` on DPDK's interrupt thread and waits for it. memif's driver handles its sockets there
// and takes no lock against other threads that stop or close a port: everything but its bursts has
// to happen on that thread. Not to be called from it. False, and not run: DPDK has failed.
bool run_on_dpdk_thread(const std::function<void()>& task);

// Makes the calling thread one that DPDK knows, so that it has its own frame caches. A poller
// calls it once before its first burst; false: all 128 places are taken, and everything still
// works but more slowly.
bool register_poller_thread();
void unregister_poller_thread();

}  // namespace ztcp::link
