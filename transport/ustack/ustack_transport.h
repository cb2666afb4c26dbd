// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ustack transport: NICs of the fabric that this process claims, each with a poller and an
// engine, behind the Transport seam. NICs are claimed and EAL is started at the first listen or
// connect, not before.
#pragma once

#include <memory>
#include <string>

#include "config/settings.h"
#include "transport/core/result.h"
#include "transport/transport.h"

namespace ztcp::ustack {

class NicSource;

// Which GPU the process drives, for choosing its NIC (see "Devices" in ARCHITECTURE.md).
struct GpuIdentity {
  std::string pci{};    // "0000:17:00.0"; empty: unknown.
  std::string uuid{};   // "GPU-..."; empty: unknown.
  int local_rank = -1;  // ZTCP_LOCAL_RANK; -1: unset.
};
// Asked at each listen and connect on NCCL's thread, when the current CUDA device is set.
using GpuProbe = GpuIdentity (*)();

// Over the DPDK links of the fabric's NICs.
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric, GpuProbe probe);
// Over any source of NICs: tests have theirs in memory.
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric, GpuProbe probe,
                                          std::shared_ptr<NicSource> source);

}  // namespace ztcp::ustack
