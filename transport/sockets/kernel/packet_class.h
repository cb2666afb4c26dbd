// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DSCP and priority of a kernel socket's packets.
#pragma once

#include <cstdint>
#include <string>

#include "core/fd.h"
#include "transport/sockets/kernel/device.h"

namespace ztcp::sockets {

// Sets the DSCP, and the priority (SO_PRIORITY) to its upper three bits: the priority chooses a
// queue of the interface, and by egress-qos-map the one of a VLAN's frames. A listener's
// connections inherit the DSCP alone. A refusal by the kernel is ignored; see class_refusal().
void set_class(const Fd& fd, std::uint8_t dscp);

// A sentence that names the option which the kernel refuses for this DSCP, and the advice; empty:
// it refuses none.
std::string class_refusal(const Device& device, std::uint8_t dscp);

}  // namespace ztcp::sockets
