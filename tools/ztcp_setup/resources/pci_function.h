// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A PCI function in sysfs, named by its address, "0000:3b:00.0", and its driver. Further readings
// are in config/machine/readings.h.
#pragma once

#include <string>
#include <vector>

#include "config/machine/readings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup::pci {

bool is_there(Host& host, const std::string& address);
// The first line of a file in its folder; empty: absent.
std::string line_of(Host& host, const std::string& address, const char* file);
std::string driver_of(Host& host, const std::string& address);    // Empty: none.
std::string override_of(Host& host, const std::string& address);  // Empty: none.
std::string id_of(Host& host, const std::string& address);        // "1af4:1041"

// Possible names of a vfio group's node: /dev/vfio/12, or /dev/vfio/noiommu-12.
std::vector<std::string> group_nodes(const std::string& group);

}  // namespace ztcp::setup::pci
