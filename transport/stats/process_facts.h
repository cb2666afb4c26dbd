// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Facts about a running process that its reader finds in /proc and the cgroup's files, so that the
// process itself does not spend system calls on them.
#pragma once

#include <cstdint>

namespace ztcp::stats {

// Zero: unknown, or not to be read by this user.
struct ProcessFacts {
  std::uint64_t cpu_throttled_ns = 0;  // By its cgroup's CPU quota, summed over CPUs, since the
                                       // cgroup was made.
  // By the host of this virtual machine, from all of the machine's CPUs, since its start.
  std::uint64_t cpu_stolen_ns = 0;
  std::uint32_t descriptors_open = 0;
  std::uint32_t descriptors_limit = 0;  // RLIMIT_NOFILE.
};

// `pid`: in this process's numbers.
ProcessFacts process_facts(std::uint32_t pid);

}  // namespace ztcp::stats
