// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sets of TCP ports, in the text form of the kernel's net.ipv4.ip_local_reserved_ports.
#pragma once

#include <bitset>
#include <string>
#include <string_view>

#include "config/machine/machine.h"

namespace ztcp::config {

inline constexpr const char* kReservedPorts = "/proc/sys/net/ipv4/ip_local_reserved_ports";

using PortSet = std::bitset<65536>;

void add_range(PortSet& ports, unsigned first, unsigned last);
// "8080,61000-65535"; malformed items are skipped.
PortSet parse_ports(std::string_view text);
std::string to_text(const PortSet& ports);

// The ports that the kernel gives to connections that ask for none.
PortSet ephemeral_ports(Machine& machine);

}  // namespace ztcp::config
