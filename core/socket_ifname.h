// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL_SOCKET_IFNAME, read as NCCL reads it.
#pragma once

#include <string_view>

namespace ztcp {

// NCCL takes a value of one character, such as "=", for unset.
constexpr bool says_interfaces(std::string_view value) { return value.size() > 1; }

// "eth,ib": interfaces whose names begin so; "=eth0,eth1": exactly these; "^docker,lo" and
// "^=eth0": all but these. At most 16 names count. A port after a colon, as in NCCL_IB_HCA
// ("mlx5_0:1"), is ignored. A list without a name ("=,") fits every interface.
bool fits_socket_ifname(std::string_view value, std::string_view interface);

}  // namespace ztcp
