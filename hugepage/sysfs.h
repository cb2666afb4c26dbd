// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the kernel offers in hugepages: sizes, counts per NUMA node, and what the container's
// cgroup leaves of them. Reads files under roots that tests replace; keeps nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hugepage/roots.h"

namespace ztcp::hugepage {

struct NodePages {
  int node = 0;  // -1: the kernel has no NUMA nodes; the machine's count.
  std::uint32_t page_kib = 0;
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::string path;  // The folder of the counts, for the command that changes them.
};

// Every size on every node, by node and then size; empty: the kernel has no hugepages.
std::vector<NodePages> read_pages(const Roots& roots = {});

// A machine whose kernel knows no nodes is node 0.
bool has_numa_node(int node, const Roots& roots = {});

// Bytes of this page size that the cgroups around this process still allow (version 1 and 2, the
// tightest of them); empty: unlimited, or no hugetlb controller.
std::optional<std::uint64_t> cgroup_allowance_bytes(std::uint32_t page_kib,
                                                    const Roots& roots = {});

}  // namespace ztcp::hugepage
