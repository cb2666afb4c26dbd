// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One link over several ports, each of which reaches one peer directly: it does the work of a
// switch, by destination MAC, before the frame is copied into that peer's ring. Broadcasts (ARP) go
// to all. Belongs to the thread that owns the NIC, and so do its ports.
//
// If a peer's ring is full, its frames wait, and with them the frames behind them, as on any link.
// But a peer of several that takes no frame for `timeout` is not running (stopped by a debugger,
// for example): until it takes a frame again, its frames are dropped, as a cable would, so that the
// others do not suffer. An absent peer misses a broadcast, which does no harm.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "transport/link/link.h"

namespace ztcp::link {

struct MeshPort {
  MacAddress peer;
  std::unique_ptr<Link> link;
};

// Longer than a busy machine usually delays a thread, and shorter than the floor of TCP's
// retransmission timeout, after which the waiting frames for other peers would be deemed lost.
inline constexpr Duration kMeshStallTimeout = std::chrono::milliseconds(4);

// Needs at least one port; all have the same properties, copy the frames they send, and share one
// own MAC. `timeout`: at least as long as peers may sleep.
std::unique_ptr<Link> make_mesh(std::vector<MeshPort> ports, Duration timeout = kMeshStallTimeout);

}  // namespace ztcp::link
