// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The addresses that this host's kernel has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/address.h"

namespace ztcp {

// Whether sockets can be bound to an address: not to an IPv6 address while duplicate address
// detection runs, nor after it found a duplicate (RFC 4862 section 5.4).
enum class AddressState : std::uint8_t { kUsable, kTentative, kDuplicate };

// One address of an interface.
struct LocalAddress {
  std::string interface;
  std::uint32_t index = 0;  // The interface's; the zone of a link-local address.
  IpPrefix prefix;
  bool is_up = false;
  bool is_running = false;  // Up, and with a carrier.
  bool is_loopback = false;
  AddressState state = AddressState::kUsable;
  std::string master{};  // The bond or bridge that the interface belongs to: "bond0".
  friend bool operator==(const LocalAddress&, const LocalAddress&) = default;
};

// In the order of getifaddrs(): IPv4 first. Empty where the kernel does not tell.
std::vector<LocalAddress> local_addresses();

// Sets the states of the addresses in `all` from the text of /proc/net/if_inet6.
void note_states(std::string_view if_inet6, std::vector<LocalAddress>& all);
// The bond or bridge that the interface belongs to, from sysfs; empty: none. A VRF does not count:
// it is a routing table, and its interfaces are used as others are.
std::string master_of(const std::string& interface, const std::string& sys_root = "/sys");

}  // namespace ztcp
