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
#include "tools/ztcp_setup/host/interface_state.h"
#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup {

// Waits for the interfaces of the PCI function, then restores all they knew.
void restore_interfaces(Host& host, const std::string& address,
                        const std::vector<InterfaceState>& links, Reverted& reverted);

}  // namespace ztcp::setup
