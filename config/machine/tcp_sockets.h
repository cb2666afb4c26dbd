// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's TCP sockets of all processes: /proc/net/tcp and tcp6.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "config/machine/machine.h"
#include "core/address.h"

namespace ztcp::config {

struct TcpSocket {
  static constexpr unsigned kEstablished = 1;  // include/net/tcp_states.h
  static constexpr unsigned kListening = 10;

  std::array<std::uint8_t, 16> address{};  // Local; IPv4 mapped to IPv6 (::ffff:10.0.0.1).
  std::uint16_t port = 0;
  unsigned state = 0;
};
// Whether it has this local address, or any. Assumes that a socket of "::" takes IPv4, too.
bool receives_at(const TcpSocket& socket, IpAddress address);
// Whether receives_at() rests on that assumption: these files do not show IPV6_V6ONLY.
bool may_be_ipv6_only(const TcpSocket& socket, IpAddress address);
// Skips malformed lines.
std::vector<TcpSocket> tcp_sockets(Machine& machine);

}  // namespace ztcp::config
