// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Changes interfaces, one request each.
#pragma once

#include <string>

#include "core/netlink.h"
#include "tools/ztcp_setup/host/interface_state.h"

namespace ztcp::setup {

Status set_link_up(netlink::Session& kernel, const std::string& link, bool up);
Status rename_link(netlink::Session& kernel, const std::string& from, const std::string& to);
// MAC, MTU, queue length and alias.
Status set_link(netlink::Session& kernel, const std::string& link, const InterfaceState& wanted);
Status set_link_master(netlink::Session& kernel, const std::string& link,
                       const std::string& master);
Status add_child_link(netlink::Session& kernel, const std::string& parent,
                      const InterfaceState& child);
// Adds an address, neighbour, nexthop object or route. Succeeds if it exists already.
Status add_link_item(netlink::Session& kernel, const std::string& link, const NetworkItem& item);

}  // namespace ztcp::setup
