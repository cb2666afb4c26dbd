// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Puts a NIC's interfaces back as they were recorded. Each step looks first, so that it can be
// stopped anywhere and begun again, and gets on with a network manager that does the same.
#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/network.h"
#include "tools/ztcp_setup/resources/hands.h"

namespace ztcp::setup {

// Names of the interfaces of a PCI function, of virtio's and the like as well.
std::vector<std::string> interfaces_of(Host& host, const std::string& pci);

// Waits for the interfaces of `pci`, then restores all they knew.
void put_back_links(Host& host, const std::string& pci, const std::vector<LinkState>& links,
                    Restored& restored);

}  // namespace ztcp::setup
