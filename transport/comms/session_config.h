// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What sessions are told of the config, whatever carries their streams.
#pragma once

#include <cstddef>

#include "config/settings.h"
#include "transport/core/result.h"
#include "transport/msg/session.h"

namespace ztcp::comms {

// Of each lane of a NIC with that driver. Those of kernel sockets may have all of the
// NIC's connections (config::connections_of_nic()) and share a SessionBudget. A lane that reserves
// memory for its own sessions has room for twice its share of them, and for 256 at least, since
// peers need not spread theirs evenly.
msg::SessionSettings session_settings(const config::Fabric& fabric, config::NicDriver driver,
                                      std::size_t lanes);
// All zero: none.
Result<msg::ClusterKey> cluster_key(const config::Fabric& fabric);

}  // namespace ztcp::comms
