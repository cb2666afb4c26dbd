// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The log line for a device that has reached its connection limit.
#pragma once

#include <cstdint>
#include <string>

#include "config/settings.h"

namespace ztcp::comms {

// `most`: the device's connection limit.
std::string connection_limit_line(const std::string& device, const config::Fabric& fabric,
                                  std::uint32_t most);

}  // namespace ztcp::comms
