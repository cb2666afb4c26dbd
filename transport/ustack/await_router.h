// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The start of a NIC whose address or gateway comes from routers that advertise themselves.
#pragma once

#include "config/settings.h"
#include "core/result.h"
#include "transport/tcp/statistics.h"
#include "transport/ustack/nic.h"

namespace ztcp::ustack {

// Both wait for tcp.connect_timeout_ms at most. A failure is logged. The pollers are running.

// Waits until an advertisement gives the NIC its address, and all lanes have it.
Result<tcp::TakenAddress> await_address(const config::Fabric& fabric, Nic& nic);

// Waits until all lanes know a router: until then, connections with other networks would fail.
Status await_router(const config::Fabric& fabric, Nic& nic);

}  // namespace ztcp::ustack
