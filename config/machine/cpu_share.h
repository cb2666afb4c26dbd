// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The CPUs of this process, and the ranks that share them. A process reads them once, when its
// transports are made, and plans all its devices by them: NCCL and training frameworks change the
// mask later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/machine/machine.h"

namespace ztcp::config {

// The ranks of this host.
struct LocalRanks {
  std::size_t count = 1;  // At least 1.
  std::string source;     // "LOCAL_WORLD_SIZE", "2 GPUs"; empty: neither tells.
};

struct CpuShare {
  std::vector<std::uint32_t> allowed;  // CPUs that this process may run on, ascending.
  // CPUs of all ranks of the host together: those of the tightest cpuset of the cgroups around this
  // process, else those online. Masks of single ranks are parts of them.
  std::size_t common = 0;
  std::size_t quota = 0;  // CPUs' worth of time that the cgroups grant, at least 1; 0: no limit.
  // By NUMA node: its CPUs that are online.
  std::map<std::int32_t, std::vector<std::uint32_t>> nodes;
  LocalRanks ranks;
};

// The launcher's word, else one rank for each GPU, else 1. Reads the environment, which nothing
// changes while NCCL sets itself up.
LocalRanks local_ranks(Machine& machine);
// Never fails: what can't be read is left out.
CpuShare read_cpu_share(Machine& machine);

}  // namespace ztcp::config
