// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Restores a NIC's interfaces as recorded. Each step checks first, so that it can be interrupted
// and repeated, and works beside a network manager that restores the same.
#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/interface_state.h"
#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup {

// Waits for the interfaces of the PCI function, then restores their state.
void restore_interfaces(Host& host, const std::string& address,
                        const std::vector<InterfaceState>& links, Reverted& reverted);

}  // namespace ztcp::setup
