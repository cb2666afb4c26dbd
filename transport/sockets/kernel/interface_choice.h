// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the interfaces of a host without a config: those that NCCL's own sockets would choose, by
// NCCL's variables and in its order, so that a job set up for NCCL needs no further settings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/address.h"
#include "core/local_addresses.h"

namespace ztcp::sockets {

// The values of NCCL's variables; empty: not set.
struct InterfaceRequest {
  std::string ifname{};   // NCCL_SOCKET_IFNAME
  std::string family{};   // NCCL_SOCKET_FAMILY
  std::string comm_id{};  // NCCL_COMM_ID, where rank 0 listens.
  // The host in comm_id, if it could be resolved, and the interface index of a link-local address.
  std::optional<IpAddress> comm_id_host{};
  std::uint32_t comm_id_zone = 0;
};

struct InterfaceChoice {
  std::vector<LocalAddress> taken;  // One address for each interface, in the kernel's order.
  std::string by;                   // "NCCL_SOCKET_IFNAME=eth"
  // Interfaces that NCCL would choose but most peers can't reach: members of a bond or a bridge,
  // and those with only a link-local address. They are chosen if no other fits, or if "=" names
  // them.
  std::vector<LocalAddress> left_out{};
};

// Why most peers can't reach this interface at this address; empty: no reason known.
std::string oddity_of(const LocalAddress& address);

// Chooses from `all`. An interface's first address that is neither link-local nor in 127.0.0.0/8 is
// preferred; one that failed duplicate address detection is never chosen. Without
// NCCL_SOCKET_IFNAME: the interfaces named ib*; else the one in rank 0's network; else all but
// docker*, lo* and virbr*; else the first of docker*, lo*, virbr* that exists.
InterfaceChoice choose_interfaces(const InterfaceRequest& request,
                                  std::span<const LocalAddress> all);

// Parses "10.0.0.1:4444", "host7:4444", "[2001:db8::1]:4444", "[fe80::1%eth0]:4444". Absent: the
// text has none of these forms.
struct CommIdHost {
  std::string name;  // Or address.
  std::string zone;  // An interface; empty: none.
};
std::optional<CommIdHost> comm_id_host(std::string_view comm_id);

// From this process's environment. May resolve the host in NCCL_COMM_ID by DNS, as NCCL does.
InterfaceRequest interface_request();

}  // namespace ztcp::sockets
