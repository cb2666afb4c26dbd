// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The log line of a device at init: transport, NIC, GPU, threads, and each feature that is off with
// the reason.
#pragma once

#include <string>

#include "config/settings.h"
#include "transport/plan/device_plan.h"
#include "transport/transport.h"

namespace ztcp::ustack {

std::string device_line(const config::Fabric& fabric, const config::Nic& nic,
                        const DeviceProperties& device, const plan::DevicePlan& plan);

}  // namespace ztcp::ustack
