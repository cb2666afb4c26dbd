// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The switch's counters as a table and as JSON.
#pragma once

#include <string>

#include "tools/ztcp_switch/fabric_switch.h"

namespace ztcp::fabric {

std::string table_of(const FabricSwitch& fabric, TimePoint now, Duration running);
std::string json_of(const FabricSwitch& fabric, std::uint64_t seed, TimePoint now,
                    Duration running);

}  // namespace ztcp::fabric
