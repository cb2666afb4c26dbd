// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ustack transport: NICs of the fabric that this process claims, each with its lanes, behind
// the Transport interface. The first listen or connect claims a NIC and starts EAL; nothing is
// touched before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/machine/cpu_share.h"
#include "config/settings.h"
#include "core/result.h"
#include "transport/transport.h"

namespace ztcp::ustack {

class NicSource;

struct GpuIdentity {
  std::string pci{};   // "0000:17:00.0"; empty: unknown.
  std::string uuid{};  // "GPU-..."; empty: unknown.
};
// The GPUs of this process, for choosing its NICs (docs/architecture.md, "Devices and processes").
struct ProcessGpus {
  std::optional<GpuIdentity> current{};  // The calling thread's GPU, if known.
  std::vector<GpuIdentity> driven{};     // GPUs with communicators so far, including `current`.
  std::vector<GpuIdentity> active{};     // GPUs with a context: they may get communicators later.
  int local_rank = -1;                   // ZTCP_LOCAL_RANK; -1: unset.
};
// Called on NCCL's thread at each listen and connect, when the current CUDA device is set.
using GpuProbe = ProcessGpus (*)();

// Whether ustack is the transport for this NIC's driver.
bool carries(const config::Nic& nic);
// Whether a NIC of the fabric is exposed as several NCCL devices when the tuner chooses the
// channels by size.
bool is_shown_often(const config::Fabric& fabric);

// A transport over the DPDK links of the fabric's NICs. `cpus`: this process's CPUs, for which the
// threads of its NICs are planned (transport/plan/device_plan.h).
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          const config::CpuShare& cpus, GpuProbe probe);
// A transport over any source of NICs: tests have one in memory.
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          const config::CpuShare& cpus, GpuProbe probe,
                                          std::shared_ptr<NicSource> source);

}  // namespace ztcp::ustack
