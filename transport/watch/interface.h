// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the address that a watch listens on: one that the hosts of the job can reach, such as
// that of NCCL's bootstrap.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/address.h"
#include "core/local_addresses.h"

namespace ztcp::watch {

// Interface of the default route, from the texts of /proc/net/route and /proc/net/ipv6_route: that
// of IPv4 if there is one; empty: there is none.
std::string default_interface(std::string_view routes, std::string_view routes_v6);
std::string default_interface();

// NCCL's variables; empty: not set.
struct NcclSockets {
  std::string_view ifname{};  // NCCL_SOCKET_IFNAME
  std::string_view family{};  // NCCL_SOCKET_FAMILY
};

// `wanted` names an interface, or is "auto": then the rules of NCCL_SOCKET_IFNAME where that is
// set, else the interface of the default route, else the first that is no loopback or container
// bridge, else loopback. IPv6 addresses are taken where there is no IPv4 address, or where NCCL's
// family says so; never link-local ones, because the peer does not know on which of its links this
// host is.
std::optional<IpAddress> choose_address(std::string_view wanted, const NcclSockets& nccl,
                                        std::string_view default_route,
                                        std::span<const LocalAddress> all);

}  // namespace ztcp::watch
