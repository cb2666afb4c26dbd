// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks hugepages and locked memory for NICs with a driver of DPDK.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/hugepages.h"
#include "config/machine/readings.h"
#include "core/counted.h"
#include "hugepage/budget.h"
#include "transport/plan/device_plan.h"

namespace ztcp::config {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::string gpu_of(const Nic& nic) { return nic.gpu_pci.empty() ? nic.gpu_uuid : nic.gpu_pci; }

std::string node_text(std::int32_t node) {
  return node < 0 ? "this machine" : fmt::format("NUMA node {}", node);
}

// The pool that a NIC on `node` draws from; -1: any node's.
hugepage::NodePages pool_of(std::int32_t node, std::uint32_t page_kib,
                            const std::vector<hugepage::NodePages>& offered) {
  hugepage::NodePages pool;
  pool.node = node;
  for (const hugepage::NodePages& pages : offered) {
    if (pages.page_kib != page_kib) continue;
    if (node >= 0 && pages.node >= 0 && pages.node != node) continue;
    pool.page_kib = page_kib;  // Stays 0 if the kernel has none.
    pool.total += pages.total;
    pool.free += pages.free;
    pool.path =
        node >= 0 ? pages.path : fmt::format("/sys/kernel/mm/hugepages/hugepages-{}kB", page_kib);
  }
  return pool;
}

using NicNeeds = std::vector<hugepage::NicNeed>;

struct PciNic {
  std::size_t index;  // Index in the fabric.
  hugepage::NicNeed need;
};

// NICs on PCI by the node they get memory from. A node that does not exist has no memory, and the
// plugin then uses the NIC's real one; a NIC without a known node uses node 0.
std::vector<PciNic> nics_of(Checklist& list, const std::vector<hugepage::NodePages>& offered) {
  const bool knows_nodes = std::any_of(offered.begin(), offered.end(),
                                       [](const auto& pages) { return pages.node >= 0; });
  std::vector<PciNic> nics;
  for (std::size_t i = 0; i < list.fabric.nics.size(); ++i) {
    const Nic& nic = list.fabric.nics[i];
    if (!is_dpdk_nic(nic.driver)) continue;
    hugepage::NicNeed need{nic.numa_node, nic.mtu_bytes, gpu_of(nic), plan::most_lanes(nic)};
    if (nic.numa_node < 0) {
      need.node = knows_nodes ? 0 : -1;
    } else if (!has_numa_node(list.machine, nic.numa_node)) {
      need.node = -1;
      list.warning("numa", nic.name,
                   fmt::format("numa_node = {} in the config, which this machine does not have: "
                               "its memory may lie anywhere",
                               nic.numa_node),
                   fmt::format("write the number of {}/numa_node, or -1", pci_folder(nic.pci)));
    }
    nics.push_back({i, std::move(need)});
  }
  return nics;
}

// The NICs of each process to check: the asking process's, else those of each GPU, and each NIC
// that is free for any process, one per process.
std::vector<NicNeeds> processes_of(const std::vector<PciNic>& nics, const NicList& own_nics) {
  std::vector<NicNeeds> processes;
  if (!own_nics.empty()) {
    NicNeeds own;
    for (const PciNic& nic : nics)
      if (std::find(own_nics.begin(), own_nics.end(), nic.index) != own_nics.end())
        own.push_back(nic.need);
    if (!own.empty()) processes.push_back(std::move(own));
    return processes;
  }
  std::map<std::string, std::size_t> of_gpu;
  for (const PciNic& nic : nics) {
    const auto found = of_gpu.find(nic.need.gpu);
    if (found == of_gpu.end()) {
      if (!nic.need.gpu.empty()) of_gpu.emplace(nic.need.gpu, processes.size());
      processes.push_back({nic.need});
    } else {
      processes[found->second].push_back(nic.need);
    }
  }
  return processes;
}

// Memory that set-up reserves on a node: for a process at each of its NICs, and its share of the
// spare memory.
std::uint32_t reserved_mib(const Hugepages& pages, const std::vector<PciNic>& nics, int node) {
  std::map<int, std::uint32_t> nics_of_node;
  for (const PciNic& nic : nics) ++nics_of_node[nic.need.node];
  return nics_of_node[node] * pages.per_process_mib +
         pages.spare_mib / static_cast<std::uint32_t>(nics_of_node.size());
}

void check_pool(Checklist& list, const hugepage::NodePages& pool, std::uint32_t process_mib,
                std::uint32_t host_mib) {
  const Hugepages& wanted = list.fabric.hugepages;
  const std::string where = node_text(pool.node);
  // Counts all pages as free: those in use belong to a job, and jobs end.
  hugepage::NodePages all = pool;
  all.free = all.total;
  const auto host =
      hugepage::missing_pages({{pool.node, host_mib}}, wanted.page_kib, {all}, std::nullopt);
  const auto process =
      hugepage::missing_pages({{pool.node, process_mib}}, wanted.page_kib, {pool}, std::nullopt);
  if (!process.empty())
    // Where enough pages exist but are in use, only more pages help.
    list.fault("hugepages", where, "a process " + process.front().text,
               host.empty() ? process.front().command : host.front().command);
  else if (!host.empty())
    list.warning("hugepages", where,
                 fmt::format("set-up reserves {} MiB for all processes, which {}", host_mib,
                             host.front().text),
                 host.front().command);
  else
    list.good("hugepages", where,
              fmt::format("{} x {} free of {}; a process takes {}", pool.free,
                          hugepage::page_name(wanted.page_kib), pool.total,
                          hugepage::pages_for(process_mib, wanted.page_kib)));
}

// The container's own limit, checked as if the machine had unlimited pages.
void check_cgroup(Checklist& list, std::uint32_t process_mib) {
  const Hugepages& wanted = list.fabric.hugepages;
  const auto allowance = cgroup_allowance_bytes(list.machine, wanted.page_kib);
  if (!allowance) return;
  const hugepage::NodePages endless{-1, wanted.page_kib, kUnlimited, kUnlimited, ""};
  const auto missing = [&](std::uint32_t mib) {
    return hugepage::missing_pages({{-1, mib}}, wanted.page_kib, {endless}, allowance);
  };
  if (const auto fault = missing(process_mib); !fault.empty())
    list.fault("cgroup", "hugetlb", "a process " + fault.front().text,
               missing(std::max(process_mib, wanted.per_process_mib)).front().command);
  else
    list.good("cgroup", "hugetlb", fmt::format("{} MiB left to this process", *allowance >> 20));
}

// A limit below a process's need would leave its last NIC without frames.
void check_limit(Checklist& list, const NicNeeds& process) {
  const std::uint32_t per_gpu_mib = list.fabric.hugepages.per_process_mib;
  const std::uint64_t limit_mib = hugepage::process_limit_mib(process, per_gpu_mib);
  const std::uint64_t need_mib = hugepage::unlimited_mib(process);
  if (need_mib <= limit_mib) return;
  list.fault(
      "hugepages", list.fabric.path,
      fmt::format("hugepages.per_process_mib = {} lets a process take {} MiB, which needs {} "
                  "MiB for its {}",
                  per_gpu_mib, limit_mib, need_mib, counted(process.size(), "NIC")),
      fmt::format("write per_process_mib = {} or more under [hugepages]",
                  need_mib * per_gpu_mib / limit_mib + 1));
}

}  // namespace

void check_hugepages(Checklist& list) {
  const Hugepages& wanted = list.fabric.hugepages;
  if (wanted.page_kib == 0) return;  // Rejected by validate().
  const auto offered = read_pages(list.machine);
  const auto nics = nics_of(list, offered);
  // The most memory that one process takes on each node; the numbers that the plugin passes to
  // DPDK.
  std::map<int, std::uint32_t> mib_of_node;
  std::uint32_t process_mib = 0;
  for (const NicNeeds& process : processes_of(nics, list.own_nics)) {
    check_limit(list, process);
    std::uint32_t sum_mib = 0;
    for (const auto& need :
         hugepage::process_needs(process, wanted.per_process_mib, wanted.page_kib)) {
      sum_mib += need.mib;
      for (const hugepage::NicNeed& nic : process) {
        if (std::max(nic.node, 0) != need.node) continue;
        std::uint32_t& mib = mib_of_node[nic.node];
        mib = std::max(mib, need.mib);
      }
    }
    process_mib = std::max(process_mib, sum_mib);
  }
  for (const auto& [node, mib] : mib_of_node)
    check_pool(list, pool_of(node, wanted.page_kib, offered), mib,
               reserved_mib(wanted, nics, node));
  check_cgroup(list, process_mib);
}

void check_locked_memory(Checklist& list) {
  const auto limit = locked_memory_limit(list.machine);
  const std::uint64_t want = std::uint64_t{list.fabric.hugepages.per_process_mib} << 20;
  const std::string where = "/proc/self/limits";
  if (!limit) return;
  const std::string found =
      *limit == kUnlimited ? std::string("unlimited") : fmt::format("{} KiB", *limit >> 10);
  // The IOMMU's mappings count as locked memory, except with CAP_IPC_LOCK: a process's pages, and
  // the buffers that jobs register. So does all memory that an mlx5 NIC reads and writes.
  const auto& nics = list.fabric.nics;
  const bool counts = list.fabric.host.host_class == HostClass::kIommu ||
                      std::any_of(nics.begin(), nics.end(),
                                  [](const Nic& nic) { return nic.driver == NicDriver::kMlx5; });
  if (!counts)
    list.good("memlock", where, found + "; without an IOMMU nothing counts against it");
  else if (has_capability(list.machine, kCapIpcLock))
    list.good("memlock", where, found + ", but CAP_IPC_LOCK lifts the limit");
  else if (*limit > want)
    list.good("memlock", where, found);
  else
    list.fault("memlock", where,
               fmt::format("max locked memory is {}, wanted unlimited, or more than the {} KiB of "
                           "hugepages that a process may take",
                           found, want >> 10),
               "ulimit -l unlimited; docker run --ulimit memlock=-1; LimitMEMLOCK=infinity");
}

}  // namespace ztcp::config
