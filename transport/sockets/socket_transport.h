// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sockets transport: network interfaces of this host, over the kernel's TCP, behind the
// Transport seam. A device is brought up at its first listen or connect, not before.
#pragma once

#include <memory>
#include <vector>

#include "config/machine/cpu_share.h"
#include "config/settings.h"
#include "transport/core/result.h"
#include "transport/sockets/device.h"
#include "transport/transport.h"

namespace ztcp::sockets {

// `fabric`: what sessions and pollers are told; its NICs are not asked. `cpus`: of this process, as
// its devices are planned for (transport/plan/device_plan.h).
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric, std::vector<Device> devices,
                                          const config::CpuShare& cpus);

}  // namespace ztcp::sockets
