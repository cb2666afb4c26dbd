// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The XDP program of an interface: sends TCP segments to ztcp's ports into the AF_XDP sockets, and
// passes every other frame to the kernel. It is assembled here, so that no compiler of BPF is
// needed, neither when ztcp is built nor when a job starts.
#pragma once

#include <cstdint>
#include <linux/bpf.h>
#include <vector>

#include "core/address.h"

namespace ztcp::link::xdp {

// The segments that belong to ztcp: to this address, and to the listening port of a process or to a
// source port of ztcp's own connections.
struct Steering {
  IpAddress address;
  std::uint16_t listen_port = 0;
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  std::uint16_t processes = 1;  // With listening ports from listen_port on.
  friend bool operator==(const Steering&, const Steering&) = default;
};

// `map`: descriptor of a map of AF_XDP sockets by queue. A frame of a queue without a socket passes
// to the kernel, and so does every frame that is not plain TCP over IP: with a VLAN tag, IPv4
// options or IPv6 extension headers, or a fragment.
std::vector<bpf_insn> assemble(const Steering& steering, int map);

}  // namespace ztcp::link::xdp
