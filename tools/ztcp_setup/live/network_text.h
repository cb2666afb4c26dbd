// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Formats the kernel's messages as commands that an operator can type: for items that could not be
// restored, and to compare items.
#pragma once

#include <string>

#include "core/netlink_message.h"

namespace ztcp::setup {

std::string address_command(const netlink::Message& message, const std::string& link);
std::string neighbour_command(const netlink::Message& message, const std::string& link);
std::string nexthop_command(const netlink::Message& message);
std::string route_command(const netlink::Message& message);

std::string mac_text(netlink::Bytes mac);  // "52:54:00:77:01:0a"

}  // namespace ztcp::setup
