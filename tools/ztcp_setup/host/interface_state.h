// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a network interface knows and loses when its driver goes: all that has to be put back.
// Recorded before a NIC is taken over, kept in the journal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ztcp::setup {

// An address, a permanent neighbour, a nexthop object or a route.
struct NetworkItem {
  std::string command;  // What a person would type: "ip address add 10.0.0.5/24 dev eth1".
  // The kernel's own message about it, in hex, so that nothing is lost that we know nothing of;
  // numbers of interfaces in it are replaced when it is sent back.
  std::string message;
  std::int64_t expires_unix_s = 0;  // A lease; 0: for ever.
  friend bool operator==(const NetworkItem&, const NetworkItem&) = default;
};

// What ethtool sets in one go, by the names of its command line: "ring" with "rx" 1024 and "tx"
// 512. What is on or off is 1 or 0.
struct SettingGroup {
  std::string name;  // "channels", "ring", "coalesce", "pause", "features", "private-flags"
  std::vector<std::pair<std::string, std::uint32_t>> values;
  friend bool operator==(const SettingGroup&, const SettingGroup&) = default;
};

struct InterfaceState {
  std::string name;
  std::string mac;            // "52:54:00:77:01:0a"
  std::string permanent_mac;  // Burnt in; empty where the driver doesn't say.
  std::uint32_t mtu_bytes = 0;
  std::uint32_t queue_length = 0;
  std::string alias;
  std::string master;  // The bond, bridge or VRF it belongs to; empty: none.
  bool up = false;
  std::string kind;  // "vlan"; empty: a physical one.
  std::string info;  // Of a kind: the kernel's description, in hex.
  std::vector<NetworkItem> addresses;
  std::vector<NetworkItem> neighbours;
  // And the nexthop objects that some refer to; in the order in which they can be added.
  std::vector<NetworkItem> routes;
  // Files below /proc/sys/net that differ from what a new interface gets.
  std::vector<std::pair<std::string, std::string>> sysctls;
  // Of its driver, which forgets them. Children have none: their features follow their parent's.
  std::vector<SettingGroup> settings;
  std::vector<InterfaceState> children;  // VLANs on top of it, and what is on top of these.
  friend bool operator==(const InterfaceState&, const InterfaceState&) = default;
};

// Whether both stand for the same thing on top of an interface: of one kind, and with one tag.
bool is_same_child(const InterfaceState& one, const InterfaceState& other);

}  // namespace ztcp::setup
