// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The addresses that this host's kernel has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/core/address.h"

namespace ztcp {

// Whether sockets can be bound to an address: not to one of IPv6 while the kernel looks for another
// host of the link that has it, nor where there is one (RFC 4862 section 5.4).
enum class AddressState : std::uint8_t { kUsable, kTentative, kDuplicate };

// One of an interface's.
struct LocalAddress {
  std::string interface;
  std::uint32_t index = 0;  // The interface's; the zone of a link-local address.
  IpPrefix prefix;
  bool is_up = false;
  bool is_running = false;  // Up, and with a carrier.
  bool is_loopback = false;
  AddressState state = AddressState::kUsable;
  std::string master{};  // The bond or bridge that the interface is a part of: "bond0".
  friend bool operator==(const LocalAddress&, const LocalAddress&) = default;
};

// In the order of getifaddrs(): those of IPv4 first. Empty where the kernel does not tell.
std::vector<LocalAddress> local_addresses();

// The states that /proc/net/if_inet6 has, whose text that is, of the addresses in `all`.
void note_states(std::string_view if_inet6, std::vector<LocalAddress>& all);
// What the interface is a part of, by sysfs; empty: of nothing. A VRF is a routing table, and its
// interfaces are used as others are.
std::string master_of(const std::string& interface, const std::string& sys_root = "/sys");

}  // namespace ztcp
