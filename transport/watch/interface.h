// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which of this host's addresses a watch listens on: one that the hosts of the job reach, which is
// where NCCL's bootstrap goes, too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/core/address.h"
#include "transport/core/local_addresses.h"

namespace ztcp::watch {

// That of the default route, from the text of /proc/net/route; empty: there is none.
std::string default_interface(std::string_view routes);
std::string default_interface();

// `wanted` names an interface, or is "auto": by the rules of NCCL_SOCKET_IFNAME (`nccl`) where that
// is set, else the interface of the default route, else the first that is no loopback or bridge of
// containers, else loopback.
std::optional<Ipv4Address> choose_address(std::string_view wanted, std::string_view nccl,
                                          std::string_view default_route,
                                          std::span<const LocalAddress> all);

}  // namespace ztcp::watch
