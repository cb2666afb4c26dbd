// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How an address, a neighbour, a nexthop object or a route is kept: as the kernel's own message,
// attribute for attribute. Whatever flag, metric or encapsulation it carries goes back in as it
// came out, also those that this program has never heard of.
#pragma once

#include <string>
#include <string_view>

#include "config/network/netlink.h"
#include "tools/ztcp_setup/host/interface_state.h"

namespace ztcp::setup {

// Of an item of interface number `index`.
std::string recorded(const config::netlink::Message& message, unsigned index);

// Puts it back, to an interface that has the number `index` now.
Result<config::netlink::NetlinkRequest> request_for(const NetworkItem& item, unsigned index);

// Bytes in a string, either way.
inline config::netlink::Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view chars_of(config::netlink::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ztcp::setup
