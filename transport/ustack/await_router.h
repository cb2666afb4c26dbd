// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The start of a NIC whose gateway is a router that advertises itself.
#pragma once

#include "config/settings.h"
#include "core/result.h"
#include "transport/ustack/nic.h"

namespace ztcp::ustack {

// Waits until all lanes know a router, for tcp.connect_timeout_ms at most: until then, connections
// with other networks would fail. A failure is logged. The pollers are running.
Status await_router(const config::Fabric& fabric, Nic& nic);

}  // namespace ztcp::ustack
