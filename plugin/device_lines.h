// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The one line per device that init says: what carries the bytes, over which NIC, for which GPU,
// and why whatever is off is off.
#pragma once

#include <string>

#include "config/settings.h"
#include "transport/transport.h"

namespace ztcp::plugin {

std::string device_line(const config::Fabric& fabric, const config::Nic& nic,
                        const DeviceProperties& device);

}  // namespace ztcp::plugin
