// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Addresses of an imaginary host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/local_addresses.h"

namespace ztcp::sockets {

// `state`: "down" or "no-carrier"; empty: up and running.
inline LocalAddress at(std::string_view interface, std::string_view address, std::uint32_t index,
                       std::string_view state = {}) {
  LocalAddress one;
  one.interface = interface;
  one.index = index;
  one.prefix = *parse_ip_prefix(address);
  one.is_up = state != "down";
  one.is_running = state.empty();
  one.is_loopback = interface == "lo";
  return one;
}

}  // namespace ztcp::sockets
