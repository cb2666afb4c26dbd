// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the kernel knows of interfaces, addresses and routes: read once, over rtnetlink, before a
// NIC is taken, since nothing of it is left afterwards. For tools.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "config/network/netlink_message.h"
#include "config/problem.h"
#include "transport/core/address.h"

namespace ztcp::config {

struct InterfaceAddress {
  static constexpr std::uint32_t kForever = std::numeric_limits<std::uint32_t>::max();
  Ipv4Prefix prefix;
  bool secondary = false;
  std::uint32_t valid_s = kForever;  // Less: it was leased and goes away when nobody renews it.
};

using Ipv6Bytes = std::array<std::uint8_t, 16>;

struct Interface {
  std::uint32_t index = 0;
  std::string name;
  std::string kind;           // "vlan", "bond", "macvlan"; empty: a device of its own.
  std::uint16_t vlan_id = 0;  // Of a VLAN.
  std::uint32_t lower = 0;    // Index of what a VLAN sits on; 0: none.
  std::uint32_t mtu_bytes = 0;
  std::vector<InterfaceAddress> ipv4;  // In the kernel's order.
  std::vector<Ipv6Bytes> ipv6;
};

struct Route {
  bool ipv6 = false;
  std::uint32_t table = 0;
  Ipv4Prefix destination{{}, 0};  // Of IPv6 only the length is kept: 0 is a default route.
  std::optional<Ipv4Address> gateway;
  std::uint32_t interface = 0;  // Index.
  std::uint32_t metric = 0;
};

// What "ip nexthop" makes; routes refer to it by its number.
struct Nexthop {
  std::uint32_t id = 0;
  std::uint32_t interface = 0;  // Index; 0 for a group.
  std::optional<Ipv4Address> gateway;
  std::vector<std::uint32_t> members;  // Of a group.
};

struct Network {
  std::vector<Interface> interfaces;
  std::vector<Nexthop> nexthops;
  std::vector<Route> routes;  // Of all tables.

  const Interface* find(std::string_view name) const;
  const Interface* find(std::uint32_t index) const;
};

tl::expected<Network, Problem> read_network();

// Takes up what one message of the kernel's says. Links come before addresses, nexthop objects
// before routes.
void take_message(const netlink::Message& message, Network& network);

}  // namespace ztcp::config
