// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A link that hands frames addressed to its own MAC back in software. NCCL connects a NIC to itself
// (one-NIC and GDR probes, two ranks that were given the same NIC), and no NIC or switch sends a
// frame back where it came from. Wraps any link; costs one address comparison per frame sent.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/link/link.h"

namespace ztcp::ustack {

// `max_held_bytes`: how much, by charge_bytes, the stack keeps of received frames at most.
std::unique_ptr<link::Link> with_loopback(std::unique_ptr<link::Link> link,
                                          std::size_t max_held_bytes);

}  // namespace ztcp::ustack
