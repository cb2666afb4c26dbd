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

// Interface of the default route, from the text of /proc/net/route; empty: there is none.
std::string default_interface(std::string_view routes);
std::string default_interface();

// `wanted` names an interface, or is "auto": then the rules of NCCL_SOCKET_IFNAME (`nccl`) where
// that is set, else the interface of the default route, else the first that is no loopback or
// container bridge, else loopback.
std::optional<Ipv4Address> choose_address(std::string_view wanted, std::string_view nccl,
                                          std::string_view default_route,
                                          std::span<const LocalAddress> all);

}  // namespace ztcp::watch
