// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ustack transport: NICs of the fabric that this process claims, each with a poller and an
// engine, behind the Transport seam. NICs are claimed and EAL is started at the first listen or
// connect, not before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/machine/cpu_share.h"
#include "config/settings.h"
#include "transport/core/result.h"
#include "transport/transport.h"

namespace ztcp::ustack {

class NicSource;

struct GpuIdentity {
  std::string pci{};   // "0000:17:00.0"; empty: unknown.
  std::string uuid{};  // "GPU-..."; empty: unknown.
};
// The GPUs of this process, for choosing its NICs (docs/architecture.md, "Devices and processes").
struct ProcessGpus {
  std::optional<GpuIdentity> current{};  // The calling thread's, where that is known.
  std::vector<GpuIdentity> driven{};     // By communicators so far, `current` among them.
  std::vector<GpuIdentity> active{};     // Those the process has a context on: more may be driven.
  int local_rank = -1;                   // ZTCP_LOCAL_RANK; -1: unset.
};
// Asked at each listen and connect on NCCL's thread, when the current CUDA device is set.
using GpuProbe = ProcessGpus (*)();

// Whether it is for ustack to carry such a NIC.
bool carries(const config::Nic& nic);
// Whether NCCL shall be shown one of the fabric's NICs as several devices, where its channels are
// chosen by size.
bool is_shown_often(const config::Fabric& fabric);

// Over the DPDK links of the fabric's NICs. `cpus`: of this process, as its NICs are planned for
// (transport/plan/device_plan.h).
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          const config::CpuShare& cpus, GpuProbe probe);
// Over any source of NICs: tests have theirs in memory.
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          const config::CpuShare& cpus, GpuProbe probe,
                                          std::shared_ptr<NicSource> source);

}  // namespace ztcp::ustack
