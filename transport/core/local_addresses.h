// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The addresses that this host's kernel has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/core/address.h"

namespace ztcp {

// One of an interface's.
struct LocalAddress {
  std::string interface;
  std::uint32_t index = 0;  // The interface's; the zone of a link-local address.
  IpPrefix prefix;
  bool is_up = false;
  bool is_running = false;  // Up, and with a carrier.
  bool is_loopback = false;
  friend bool operator==(const LocalAddress&, const LocalAddress&) = default;
};

// In the order of getifaddrs(): those of IPv4 first. Empty where the kernel does not tell.
std::vector<LocalAddress> local_addresses();

}  // namespace ztcp
