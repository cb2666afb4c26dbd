// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Restores a driver's settings from before its NIC was taken: a newly bound driver starts with its
// defaults. Sets only differences. Refused settings are notes, not faults: the network works
// without them.
#pragma once

#include <string>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/interface_state.h"
#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup {

// The equivalent command: "ethtool -G eth1 rx 1024 tx 512".
std::string settings_command(const std::string& link, const SettingGroup& group);

void restore_settings(Host& host, const InterfaceState& wanted, Reverted& reverted);

}  // namespace ztcp::setup
