// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Gives a driver the settings back that it had before its NIC was taken: a driver that binds anew
// starts with its defaults. Only what differs is set. What the driver doesn't take is noted, and is
// no fault: the network works without it.
#pragma once

#include <string>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/interface_state.h"
#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup {

// What a person would type: "ethtool -G eth1 rx 1024 tx 512".
std::string settings_command(const std::string& link, const SettingGroup& group);

void restore_settings(Host& host, const InterfaceState& wanted, Reverted& reverted);

}  // namespace ztcp::setup
