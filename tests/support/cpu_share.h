// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// CPUs that a process might have.
#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "config/machine/cpu_share.h"
#include "config/machine/live_machine.h"

namespace ztcp::test {

// The first `allowed` of those that are online, with a cgroup's quota or none.
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

// Of this process.
inline config::CpuShare cpus_of_this_process() {
  config::LiveMachine machine;
  return config::read_cpu_share(machine);
}

}  // namespace ztcp::test
