// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which NIC is whose (a DPDK NIC belongs to one process, every process lists all of them,
// so the device NCCL names is advice). Pure functions over the config.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "transport/core/listen_address.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {

struct NicChoice {
  std::vector<std::size_t> order;  // NICs that may carry what NCCL meant for a device, best first.
  // Each of them is this process's: it drives the GPUs they are paired with. Else it gets one of
  // them, the first that is free, and keeps to that.
  bool all_are_ours = false;
};

// For the device `wanted` that NCCL names: the NICs that are paired with the GPUs of this process,
// `wanted` before all others if it is one of them, then those of the calling thread's GPU, taken in
// turn so that all of them get their share of names that are other processes'. No NIC paired with
// them: the one at local_rank; else every NIC that is paired with no GPU, or all of them when no
// GPU is known.
NicChoice choose_nics(std::span<const config::Nic> nics, const ProcessGpus& gpus,
                      std::size_t wanted);

// The NICs that a process needs room for: those of the GPUs that it drives or holds a context on,
// else the one at local_rank; empty: not known before one is claimed.
std::vector<std::size_t> expected_nics(std::span<const config::Nic> nics, const ProcessGpus& gpus);

// Why no frame comes from `nic` to who listens there, as in "ztcp0 has no route to ..."; empty: one
// may.
std::string obstacle(const config::Nic& nic, const ListenAddress& peer);

// Another NIC may stand in for the one NCCL named. NICs of other drivers lie in other networks. A
// difference in speed makes NCCL's plan worse, not wrong.
bool can_stand_in(const config::Nic& wanted, const config::Nic& substitute);

}  // namespace ztcp::ustack
