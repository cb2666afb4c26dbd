// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What sessions are told of the config, whatever carries their streams.
#pragma once

#include "config/settings.h"
#include "transport/core/result.h"
#include "transport/msg/session.h"

namespace ztcp::comms {

// Of each of so many queues of a NIC, over which its sessions are spread.
msg::SessionSettings session_settings(const config::Fabric& fabric, std::size_t queues);
// All zero: none.
Result<msg::ClusterKey> cluster_key(const config::Fabric& fabric);

}  // namespace ztcp::comms
