// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the NICs of this process. A DPDK NIC belongs to one process, but every process lists all
// of them to NCCL, so the device that NCCL asks for is only a hint. Pure functions over the config.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/listen_address.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {

struct NicChoice {
  std::vector<std::size_t> order;  // NICs that may carry the traffic of a device, best first.
  // This process drives the GPUs that all of them are paired with, so all are its own. Otherwise it
  // takes the first free one and keeps to it.
  bool all_are_ours = false;
};

// For the device `wanted` that NCCL asks for: the NICs paired with the GPUs of this process,
// `wanted` first if it is one of them, then those of the calling thread's GPU. The latter rotate by
// `wanted`, so that requests for other processes' NICs spread over them. If no NIC is paired with
// those GPUs: the NIC at local_rank; without a local rank every NIC that is paired with no GPU, or
// every NIC when no GPU is known.
NicChoice choose_nics(std::span<const config::Nic> nics, const ProcessGpus& gpus,
                      std::size_t wanted);

// The NICs that a process reserves memory for: those of the GPUs that it drives or holds a context
// on, else the one at local_rank; empty: not known before a NIC is claimed.
std::vector<std::size_t> expected_nics(std::span<const config::Nic> nics, const ProcessGpus& gpus);

// Why no frame from `nic` can reach `peer`, as far as its address is known: "has no route to ...";
// empty: nothing prevents it.
std::string obstacle(const config::Nic& nic, const ListenAddress& peer);

// Whether another NIC may carry the traffic of the one NCCL asked for. NICs of another driver are
// in another network. A difference in speed makes NCCL's plan worse, not wrong.
bool can_stand_in(const config::Nic& wanted, const config::Nic& substitute);

}  // namespace ztcp::ustack
