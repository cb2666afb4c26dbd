// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Stores an address, neighbour, nexthop object or route as the kernel's own message, attribute for
// attribute, so that flags, metrics and encapsulations survive, including unknown ones.
#pragma once

#include <string>
#include <string_view>

#include "core/netlink.h"
#include "tools/ztcp_setup/host/interface_state.h"

namespace ztcp::setup {

// For an item of the interface with the number `index`.
std::string recorded(const netlink::Message& message, unsigned index);

// The request that restores it to an interface that has the number `index` now.
Result<netlink::NetlinkRequest> request_for(const NetworkItem& item, unsigned index);

// Conversions between bytes and strings.
inline netlink::Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view chars_of(netlink::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ztcp::setup
