// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's side of these tests: the test's own network, its interfaces, settings and
// statistics. Only ioctl and /proc, so that no package needs to be installed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/address.h"

namespace ztcp::interop {

// Moves the calling process, which has one thread, into an empty network: nothing of the machine's
// is changed, nothing of an earlier one (a socket that still repeats its FIN, a setting) is left,
// and settings inherited from the machine become Linux's own defaults. Returns an empty string or
// the reason of the failure.
std::string enter_new_network();

// "ipv4/tcp_sack" and the like, of the network the calling thread is in.
std::string setting(const std::string& name);
[[nodiscard]] bool set_setting(const std::string& name, const std::string& value);

// False with errno.
[[nodiscard]] bool configure_interface(const std::string& name, IpPrefix address);
[[nodiscard]] bool set_interface_mac(const std::string& name, MacAddress mac);
[[nodiscard]] bool set_interface_mtu(const std::string& name, std::uint16_t mtu_bytes);
// The kernel's ARP entry for `neighbour`; nothing when it has no valid one.
std::optional<MacAddress> known_mac(Ipv4Address neighbour);
// `advertised_mtu_bytes` not 0: the kernel offers an MSS for this MTU instead of the interface's;
// for IPv4 only.
[[nodiscard]] bool add_route(IpPrefix destination, IpAddress gateway,
                             std::uint16_t advertised_mtu_bytes = 0);

// The kernel's counters since this object's construction, by the names of nstat
// ("TcpExtTCPDSACKOldSent").
class KernelCounters {
 public:
  KernelCounters() : start_(read()) {}
  std::uint64_t operator[](const std::string& name) const;

 private:
  static std::map<std::string, std::uint64_t> read();
  std::map<std::string, std::uint64_t> start_;
};

}  // namespace ztcp::interop
