// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// CPU shares that a process might have.
#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "config/machine/cpu_share.h"
#include "config/machine/live_machine.h"

namespace ztcp::test {

// The first `allowed` of the `online` CPUs; `quota` 0 means that the cgroup has no quota.
inline config::CpuShare cpus(std::size_t allowed, std::size_t online, std::size_t quota = 0,
                             config::LocalRanks ranks = {}) {
  config::CpuShare share;
  share.allowed.resize(allowed);
  std::iota(share.allowed.begin(), share.allowed.end(), 0U);
  share.common = online;
  share.quota = quota;
  share.ranks = std::move(ranks);
  return share;
}

// The share of this process.
inline config::CpuShare cpus_of_this_process() {
  config::LiveMachine machine;
  return config::read_cpu_share(machine);
}

}  // namespace ztcp::test
