// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is said when a device has no place for another connection.
#pragma once

#include <string>

#include "config/settings.h"

namespace ztcp::comms {

std::string full_line(const std::string& device, const config::Fabric& fabric);

}  // namespace ztcp::comms
