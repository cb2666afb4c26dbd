// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which interfaces the machine itself lives on, and must keep: those of the default routes, of the
// session that set-up is typed into, of file systems on the network. For tools.
#pragma once

#include <map>
#include <string>

#include "config/machine/machine.h"
#include "config/network/network.h"

namespace ztcp::config {

struct Reservation {
  std::string why;      // "carries the default route"
  bool yields = false;  // The operator may name it with --take: the machine has a better one.
};

// By interface. What lies below a bond, bridge or VLAN that is reserved is reserved as well.
using Reserved = std::map<std::string, Reservation, std::less<>>;

// `ssh_connection` is the variable of that name, empty without one; sudo drops it, so that
// established connections of sshd count as well.
Reserved reserved_interfaces(Machine& machine, const Network& network,
                             const std::string& ssh_connection);

}  // namespace ztcp::config
