// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The CPUs of this process, and the ranks that share them. A process reads them once, when it makes
// its transports, and plans all its devices with them: NCCL and training frameworks change the mask
// later.
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
  std::string source;     // "LOCAL_WORLD_SIZE", "2 GPUs"; empty: unknown.
};

struct CpuShare {
  std::vector<std::uint32_t> allowed;  // CPUs that this process may run on, ascending.
  // Number of CPUs shared by all ranks of the host: those of the tightest cpuset of the cgroups
  // around this process, else those online. Masks of single ranks are subsets.
  std::size_t common = 0;
  std::size_t quota = 0;  // CPU time the cgroups grant, in CPUs, at least 1; 0: no limit.
  // Online CPUs of each NUMA node.
  std::map<std::int32_t, std::vector<std::uint32_t>> nodes;
  LocalRanks ranks;
};

// The launcher's number, else one rank per GPU, else 1. Reads the environment, which nothing
// changes while NCCL sets itself up.
LocalRanks local_ranks(Machine& machine);
// Never fails: leaves out values that cannot be read.
CpuShare read_cpu_share(Machine& machine);

}  // namespace ztcp::config
