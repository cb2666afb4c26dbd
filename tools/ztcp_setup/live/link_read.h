// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads an interface's state that the kernel forgets with its driver.
//
// Does not run iproute2: its JSON is incomplete, and differs between releases.
#pragma once

#include <optional>
#include <string>

#include "core/netlink.h"
#include "tools/ztcp_setup/host/interface_state.h"

namespace ztcp::setup {

// Includes interfaces on top of it; without sysctls, which are files. Absent: no such interface.
Result<std::optional<InterfaceState>> read_link(netlink::Session& kernel, const std::string& name);

}  // namespace ztcp::setup
