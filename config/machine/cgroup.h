// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The cgroups around this process. A limit applies to all descendants, so every ancestor counts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/machine/machine.h"

namespace ztcp::config {

struct Cgroup {
  std::string folder;
  int version = 2;  // Version of the hierarchy, which decides the names of its files.
};

// Cgroups of the hierarchies that may have `controller` ("hugetlb"), each from the process's own up
// to the root. Inside a container some may be folders that only the host sees: they hold no files.
std::vector<Cgroup> cgroups_of(Machine& machine, std::string_view controller);

// CPU time granted by the tightest limit of the cgroups around this process, in CPUs; 0: no limit.
std::size_t cpu_quota(Machine& machine);

}  // namespace ztcp::config
