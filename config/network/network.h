// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's interfaces, addresses and routes, read once over rtnetlink before a NIC is taken,
// since they are gone afterwards. For tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "core/address.h"
#include "core/netlink_message.h"
#include "core/result.h"

namespace ztcp::config {

struct InterfaceAddress {
  static constexpr std::uint32_t kForever = std::numeric_limits<std::uint32_t>::max();
  IpPrefix prefix;
  bool secondary = false;            // IPv6: temporary (RFC 8981).
  bool is_usable = true;             // IPv6: neither tentative nor a duplicate nor deprecated.
  bool is_advertised = false;        // IPv6: formed out of a router's advertisement (RFC 4862).
  std::uint32_t valid_s = kForever;  // Smaller: leased, ends unless it is renewed.
};

struct Interface {
  std::uint32_t index = 0;
  std::string name;
  std::string kind;           // "vlan", "bond", "macvlan"; empty: a real device.
  std::uint16_t vlan_id = 0;  // For a VLAN.
  std::uint32_t lower = 0;    // Index of the interface below a VLAN; 0: none.
  std::uint32_t mtu_bytes = 0;
  std::vector<InterfaceAddress> ipv4;  // In the kernel's order.
  std::vector<InterfaceAddress> ipv6;
};

struct Route {
  bool ipv6 = false;
  std::uint32_t table = 0;
  Ipv4Prefix destination{{}, 0};  // For IPv6 only the length is kept: 0 is a default route.
  std::optional<IpAddress> gateway;
  bool is_advertised = false;   // By its router (RFC 4861).
  std::uint32_t interface = 0;  // Index.
  std::uint32_t metric = 0;
};

// An object made by "ip nexthop"; routes refer to it by number.
struct Nexthop {
  std::uint32_t id = 0;
  std::uint32_t interface = 0;  // Index; 0 for a group.
  std::optional<IpAddress> gateway;
  std::vector<std::uint32_t> members;  // For a group.
};

struct Network {
  std::vector<Interface> interfaces;
  std::vector<Nexthop> nexthops;
  std::vector<Route> routes;  // All tables.

  const Interface* find(std::string_view name) const;
  const Interface* find(std::uint32_t index) const;
};

Result<Network, Problem> read_network();

// Adds the content of one message of the kernel. Links must come before addresses, nexthop objects
// before routes.
void take_message(const netlink::Message& message, Network& network);

}  // namespace ztcp::config
