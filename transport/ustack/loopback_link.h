// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A link that loops frames to its own MAC back in software. NCCL connects a NIC to itself (one-NIC
// and GDR probes, two ranks with the same NIC), and neither NICs nor switches return a frame to the
// port it came from. Wraps any link; costs one address comparison per frame sent.
// Frames can be captured here: those that the link accepted or delivered, looped ones twice.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/link/link.h"
#include "transport/stats/capture_tap.h"

namespace ztcp::ustack {

// `max_held_bytes`: most bytes (charge_bytes) of received frames that the stack keeps. `tap`
// is not null.
std::unique_ptr<link::Link> with_loopback(std::unique_ptr<link::Link> link,
                                          std::size_t max_held_bytes,
                                          std::shared_ptr<stats::CaptureTap> tap);

}  // namespace ztcp::ustack
