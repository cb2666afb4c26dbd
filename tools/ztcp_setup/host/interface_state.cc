// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/interface_state.h"

#include <linux/if_link.h>
#include <span>

#include "core/netlink_message.h"
#include "tools/ztcp_setup/host/hex.h"

namespace ztcp::setup {

bool is_same_child(const InterfaceState& one, const InterfaceState& other) {
  // Other properties can be changed on a living interface; if the user did, it is still the same.
  const auto tag_of = [](const InterfaceState& child) {
    const std::string info = from_hex(child.info);
    const netlink::Attributes attributes(std::as_bytes(std::span(info)));
    return std::pair(attributes.number<std::uint16_t>(IFLA_VLAN_ID),
                     attributes.number<std::uint16_t>(IFLA_VLAN_PROTOCOL));
  };
  return one.kind == other.kind && (one.kind != "vlan" || tag_of(one) == tag_of(other));
}

}  // namespace ztcp::setup
