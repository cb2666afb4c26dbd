// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's hugepages: sizes, counts per NUMA node, and the amount that the container's cgroup
// still allows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/machine/machine.h"
#include "hugepage/budget.h"

namespace ztcp::config {

// Every size on every node, by node and then size; empty: the kernel has no hugepages.
std::vector<hugepage::NodePages> read_pages(Machine& machine);

// Without NUMA nodes in the kernel, node 0 exists.
bool has_numa_node(Machine& machine, int node);

// Bytes of this page size that the cgroups around this process still allow (version 1 and 2, the
// tightest of them); empty: unlimited, or no hugetlb controller.
std::optional<std::uint64_t> cgroup_allowance_bytes(Machine& machine, std::uint32_t page_kib);

}  // namespace ztcp::config
