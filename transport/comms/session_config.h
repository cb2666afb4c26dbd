// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The settings of sessions, made from the config, for every backend.
#pragma once

#include <cstddef>

#include "config/settings.h"
#include "core/result.h"
#include "transport/msg/session.h"

namespace ztcp::comms {

// For each lane of a NIC with that driver. A lane of kernel sockets may have all of the NIC's
// connections (config::connections_of_nic()), and the lanes share a SessionBudget. A lane that
// reserves memory for its own sessions has room for twice its share of them, and for 256 at least,
// since peers may spread theirs unevenly.
msg::SessionSettings session_settings(const config::Fabric& fabric, config::NicDriver driver,
                                      std::size_t lanes);
// All zero: no key is set.
Result<msg::ClusterKey> cluster_key(const config::Fabric& fabric);

}  // namespace ztcp::comms
