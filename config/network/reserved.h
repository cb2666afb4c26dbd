// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The interfaces that the machine itself needs and must keep: those of the default routes, of the
// session in which set-up runs, and of network file systems. For tools.
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

// By interface. Interfaces below a reserved bond, bridge or VLAN are reserved as well.
using Reserved = std::map<std::string, Reservation, std::less<>>;

// `ssh_connection` is the variable of that name, or empty; sudo drops it, so established
// connections of sshd count as well.
Reserved reserved_interfaces(Machine& machine, const Network& network,
                             const std::string& ssh_connection);

}  // namespace ztcp::config
