// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sockets transport: kernel TCP over network interfaces of this host, behind the Transport
// interface. A device is brought up at its first listen or connect.
#pragma once

#include <memory>
#include <vector>

#include "config/machine/cpu_share.h"
#include "config/settings.h"
#include "core/result.h"
#include "transport/sockets/kernel/device.h"
#include "transport/transport.h"

namespace ztcp::sockets {

// `fabric`: settings of sessions and pollers; its NICs are not used. `cpus`: this process's share
// of CPUs, for which its devices are planned (transport/plan/device_plan.h).
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric, std::vector<Device> devices,
                                          const config::CpuShare& cpus);

// Number of NCCL devices that one of the fabric's interfaces is exposed as.
int nccl_devices(const config::Fabric& fabric, const config::Nic& nic);

}  // namespace ztcp::sockets
