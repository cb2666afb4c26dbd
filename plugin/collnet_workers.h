// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How many threads share the sums of a CollNet group with NCCL's progress thread.
#pragma once

#include <algorithm>
#include <cstddef>

#include "config/machine/cpu_share.h"

namespace ztcp::plugin {

// As many as a rank has CPUs to spare beside the threads that have work at the same time: one of
// the application, NCCL's, and those of two lanes, which send and receive.
inline std::size_t collnet_workers(const config::CpuShare& share) {
  constexpr std::size_t kBusyThreads = 4;
  constexpr std::size_t kMost = 3;  // A rank's memory is as fast as a few CPUs.
  const std::size_t mask = share.allowed.size();
  const std::size_t ranks = std::max<std::size_t>(share.ranks.count, 1);
  std::size_t cpus = std::min(mask, std::max(share.common, mask) / ranks);
  if (share.quota != 0) cpus = std::min(cpus, share.quota / ranks);
  return std::clamp(cpus, kBusyThreads, kBusyThreads + kMost) - kBusyThreads;
}

}  // namespace ztcp::plugin
