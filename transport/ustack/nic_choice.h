// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which NIC is whose (a DPDK NIC belongs to one process, every process lists all of them,
// so the device NCCL names is advice). Pure functions over the config.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "config/settings.h"
#include "transport/core/address.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {

// The NICs this process may claim for `gpu`, best first: those paired with the GPU; else the one
// at local_rank; else every NIC that is paired with no GPU, or all of them when no GPU is known.
std::vector<std::size_t> claim_candidates(std::span<const config::Nic> nics,
                                          const GpuIdentity& gpu);

// Frames to `peer` can leave through `nic`.
bool has_route(const config::Nic& nic, Ipv4Address peer);

// Another NIC may stand in for the one NCCL named: NCCL planned with the properties of that one.
bool can_stand_in(const config::Nic& wanted, const config::Nic& substitute);

}  // namespace ztcp::ustack
