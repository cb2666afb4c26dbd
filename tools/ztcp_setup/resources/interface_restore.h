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

// A newly bound driver starts with its defaults. Sets only differences. Refused settings are notes,
// not faults: the network works without them.
void restore_settings(Host& host, const InterfaceState& wanted, Reverted& reverted);
// The equivalent command: "ethtool -G eth1 rx 1024 tx 512".
std::string settings_command(const std::string& link, const SettingGroup& group);

}  // namespace ztcp::setup
