// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which interfaces a host without a config offers: those that NCCL's own sockets would take, by its
// variables and its order, so that whoever has told NCCL has told us.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/local_addresses.h"

namespace ztcp::sockets {

// What NCCL's variables say; empty: nothing.
struct InterfaceRequest {
  std::string ifname{};   // NCCL_SOCKET_IFNAME
  std::string family{};   // NCCL_SOCKET_FAMILY
  std::string comm_id{};  // NCCL_COMM_ID, where rank 0 listens.
  // Its host, if it is known, and which interface a link-local one is on.
  std::optional<IpAddress> comm_id_host{};
  std::uint32_t comm_id_zone = 0;
};

struct InterfaceChoice {
  std::vector<LocalAddress> taken;  // One address for each interface, in the kernel's order.
  std::string by;                   // "NCCL_SOCKET_IFNAME=eth"
  // Interfaces that NCCL would have taken and most peers could not reach: parts of a bond or a
  // bridge, and those with a link-local address alone. They are taken where there is no other, or
  // where "=" names them.
  std::vector<LocalAddress> left_out{};
};

// What keeps most peers from reaching an interface by this address; empty: nothing known does.
std::string oddity_of(const LocalAddress& address);

// Of `all`. Of an interface's addresses the first that is neither link-local nor 127.0.0.0/8 is
// taken, else the first; none that fails duplicate address detection. Without a request: those
// named ib*; else that of rank 0's network; else all but docker*, lo* and virbr*; else each of
// these.
InterfaceChoice choose_interfaces(const InterfaceRequest& request,
                                  std::span<const LocalAddress> all);

// "10.0.0.1:4444", "host7:4444", "[2001:db8::1]:4444", "[fe80::1%eth0]:4444". Absent: neither.
struct CommIdHost {
  std::string name;  // Or address.
  std::string zone;  // An interface; empty: none.
};
std::optional<CommIdHost> comm_id_host(std::string_view comm_id);

// Of this process's environment. May ask the resolver for the host of NCCL_COMM_ID, as NCCL does.
InterfaceRequest interface_request();

}  // namespace ztcp::sockets
