// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All that the kernel knows of an interface and forgets with its driver.
//
// Not by iproute2 as a program: its JSON leaves things out and each release has other ones.
#pragma once

#include <optional>
#include <string>

#include "config/network/netlink.h"
#include "tools/ztcp_setup/host/interface_state.h"

namespace ztcp::setup {

// With what sits on top of it; without sysctls, which are files. Absent: there is no such
// interface.
Result<std::optional<InterfaceState>> read_link(config::netlink::Session& kernel,
                                                const std::string& name);

}  // namespace ztcp::setup
