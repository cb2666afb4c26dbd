// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What NCCL_SOCKET_IFNAME says, as NCCL reads it.
#pragma once

#include <string_view>

namespace ztcp {

// NCCL takes a value of one character, such as "=", for none.
constexpr bool says_interfaces(std::string_view value) { return value.size() > 1; }

// "eth,ib" those whose names begin so, "=eth0,eth1" exactly those, "^docker,lo" and "^=eth0" all
// but those. At most 16 names count. A port after a colon ("mlx5_0:1" is of another variable) says
// nothing here. A list of no name ("=,") is every interface.
bool fits_socket_ifname(std::string_view value, std::string_view interface);

}  // namespace ztcp
