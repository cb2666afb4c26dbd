// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state of a network interface that is lost with its driver and has to be restored. Recorded
// before a NIC is taken over, kept in the journal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ztcp::setup {

// An address, a permanent neighbour, a nexthop object or a route.
struct NetworkItem {
  std::string command;  // The equivalent command: "ip address add 10.0.0.5/24 dev eth1".
  // The kernel's own message about it, in hex, so that attributes unknown to us survive; interface
  // numbers in it are replaced when it is sent back.
  std::string message;
  std::int64_t expires_unix_s = 0;  // End of a lease; 0: permanent.
  friend bool operator==(const NetworkItem&, const NetworkItem&) = default;
};

// A group of settings of ethtool, with the names of its command line: "ring" with "rx" 1024 and
// "tx" 512. On is 1, off is 0.
struct SettingGroup {
  std::string name;  // "channels", "ring", "coalesce", "pause", "features", "private-flags"
  std::vector<std::pair<std::string, std::uint32_t>> values;
  friend bool operator==(const SettingGroup&, const SettingGroup&) = default;
};

struct InterfaceState {
  std::string name;
  std::string mac;            // "52:54:00:77:01:0a"
  std::string permanent_mac;  // Burnt in; empty if the driver does not report it.
  std::uint32_t mtu_bytes = 0;
  std::uint32_t queue_length = 0;
  std::string alias;
  std::string master;  // The bond, bridge or VRF it belongs to; empty: none.
  bool up = false;
  std::string kind;  // "vlan"; empty: a physical one.
  std::string info;  // For a kind: the kernel's description, in hex.
  std::vector<NetworkItem> addresses;
  std::vector<NetworkItem> neighbours;
  // Includes the nexthop objects that routes refer to, in an order in which they can be added.
  std::vector<NetworkItem> routes;
  // Files below /proc/sys/net that differ from a new interface's.
  std::vector<std::pair<std::string, std::string>> sysctls;
  // The driver's settings, which it forgets. Children have none: their features follow the
  // parent's.
  std::vector<SettingGroup> settings;
  std::vector<InterfaceState> children;  // VLANs on top of it, recursively.
  friend bool operator==(const InterfaceState&, const InterfaceState&) = default;
};

// Whether both are the same child of an interface: equal kind and tag.
bool is_same_child(const InterfaceState& one, const InterfaceState& other);

}  // namespace ztcp::setup
