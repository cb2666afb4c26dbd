// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DPDK's environment abstraction layer, started once per process and kept until the process ends.
// EAL can neither be started twice nor be configured later, so the first caller decides: plain
// memory for memif, hugepages for NICs. It is started on a thread of its own, with all signals
// blocked, because rte_eal_init() pins its caller. Its output never reaches stdout, stderr or
// syslog: its warnings go to core/log, the rest only when ZTCP_DPDK_LOG is set.
//
// Any thread may call these.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/result.h"

namespace ztcp::link {

enum class EalMemory : std::uint8_t {
  kPlain,      // 4 KiB pages, not shared: memif and tests, no privilege.
  kHugepages,  // Anonymous hugepages, all reserved at the start.
};

enum class IovaMode : std::uint8_t {
  kVirtual,   // Host class A, and always with plain memory.
  kPhysical,  // Host class B: vfio without an IOMMU.
};

struct EalConfig {
  EalMemory memory = EalMemory::kPlain;
  IovaMode iova = IovaMode::kVirtual;
  // For frames and queues. Plain memory uses the sum and touches pages as they are used; hugepages
  // are taken per NUMA node (index), all at the start.
  std::vector<std::uint32_t> node_memory_mib = {128};
};

// Starts EAL, or returns the result of an earlier start: success if it has the same kind of memory
// (the first caller's size applies), kBusy if it has the other kind, and the first failure again if
// it had failed. Logs the memory taken, by NUMA node, or the failure with the mending command.
Status start_eal(const EalConfig& config);

// Runs `task` on DPDK's interrupt thread and waits for it. memif's driver handles its sockets there
// and takes no lock against other threads that stop or close a port: everything but its bursts must
// run on that thread. Not to be called from it. False, and not run: DPDK has failed.
bool run_on_dpdk_thread(const std::function<void()>& task);

// Registers the calling thread with DPDK, so that it has its own frame caches. A poller calls it
// once before its first burst; false: all 128 slots are taken, and everything still works but more
// slowly.
bool register_poller_thread();
void unregister_poller_thread();

}  // namespace ztcp::link
