// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the line that init says of a device tells: what carries the bytes, over which NIC, for which
// GPU, and why whatever is off is off.
#pragma once

#include <string>

#include "config/settings.h"
#include "transport/plan/device_plan.h"
#include "transport/transport.h"

namespace ztcp::ustack {

std::string device_line(const config::Fabric& fabric, const config::Nic& nic,
                        const DeviceProperties& device, const plan::DevicePlan& plan);

}  // namespace ztcp::ustack
