// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The log line for a device that has no place for another connection.
#pragma once

#include <cstdint>
#include <string>

#include "config/settings.h"

namespace ztcp::comms {

// `most`: the number of connections that the device takes.
std::string full_line(const std::string& device, const config::Fabric& fabric, std::uint32_t most);

}  // namespace ztcp::comms
