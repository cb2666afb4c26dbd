// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One link over several ports, each of which reaches one peer directly: what a switch would do is
// done here, by destination MAC, before the frame is copied into that peer's ring. Broadcasts
// (ARP) go to all. Belongs to the thread that owns the NIC, and its ports with it.
//
// A peer whose ring is full is waited for, and with it the frames behind its own, as on any link;
// but one of several that takes nothing for so long is not running (stopped by a debugger,
// say), and until it takes a frame again what is meant for it is dropped as a cable would, so that
// the others do not suffer. Who is not there misses a broadcast, which is nobody's loss.
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

// Longer than a busy machine keeps a thread waiting, as a rule, and shorter than it takes the
// others' frames behind it to be thought lost (the floor of TCP's retransmission timeout).
inline constexpr Duration kMeshPatience = std::chrono::milliseconds(4);

// Of one port at least, all alike and all copying what they send, under one own MAC. `patience`: no
// less than peers may sleep.
std::unique_ptr<Link> make_mesh(std::vector<MeshPort> ports, Duration patience = kMeshPatience);

}  // namespace ztcp::link
