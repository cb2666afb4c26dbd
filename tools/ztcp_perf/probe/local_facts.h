// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_perf/plugin_table.h"
#include "tools/ztcp_perf/probe/facts.h"

namespace ztcp::perf::probe {

// This host's facts, with the devices of a plugin after its init. `plugin` is the name it was
// loaded by, `only` the devices to measure (empty: all). Devices that are further views of one NIC
// ("ztcp0#2") are left out.
HostFacts local_facts(Net& net, const std::string& plugin, const std::vector<int>& only);

// The file of a loaded plugin, which the loader may have found by its name.
std::string path_of(const std::string& plugin);
// Begin of the SHA-256 of that file.
std::string hash_of(const std::string& plugin);

}  // namespace ztcp::perf::probe
