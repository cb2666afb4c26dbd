// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Hugepages and locked memory against what NICs on PCI need.
#include <cstdint>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "config/checklist.h"
#include "config/machine.h"
#include "hugepage/budget.h"
#include "hugepage/sysfs.h"

namespace ztcp::config {
namespace {

constexpr unsigned kCapIpcLock = 14;  // linux/capability.h
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
// Frames of one NIC and the EAL's own; a process that gets less can't start its NIC.
constexpr std::uint32_t kLeastMib = 256;

std::string place_of(std::int32_t node) {
  return node < 0 ? "this machine" : fmt::format("NUMA node {}", node);
}

// The pool that a NIC on `node` draws on: a NIC that doesn't know its node takes from anywhere.
hugepage::NodePages pool_of(std::int32_t node, std::uint32_t page_kib,
                            const std::vector<hugepage::NodePages>& offered,
                            const std::string& sys) {
  hugepage::NodePages pool;
  pool.node = node;
  for (const hugepage::NodePages& pages : offered) {
    if (pages.page_kib != page_kib) continue;
    if (node >= 0 && pages.node >= 0 && pages.node != node) continue;
    pool.page_kib = page_kib;  // Stays 0 where the kernel has none.
    pool.total += pages.total;
    pool.free += pages.free;
    pool.path = node >= 0 ? pages.path
                          : fmt::format("{}/kernel/mm/hugepages/hugepages-{}kB", sys, page_kib);
  }
  return pool;
}

void check_pool(Checklist& list, const hugepage::NodePages& pool) {
  const Hugepages& wanted = list.fabric.hugepages;
  const auto missing = [&](std::uint32_t mib) {
    return hugepage::missing_pages({{pool.node, mib}}, wanted.page_kib, {pool}, std::nullopt);
  };
  const std::string where = place_of(pool.node);
  if (const auto fault = missing(kLeastMib); !fault.empty()) {
    // The command asks for what a job wants, not for the least it could start with.
    list.fault("hugepages", where, "a process " + fault.front().text,
               missing(wanted.per_process_mib).front().command);
  } else if (const auto warning = missing(wanted.per_process_mib); !warning.empty()) {
    list.warning("hugepages", where,
                 fmt::format("hugepages.per_process_mib = {} {}", wanted.per_process_mib,
                             warning.front().text),
                 warning.front().command);
  } else {
    list.good("hugepages", where,
              fmt::format("{} x {} free", pool.free, hugepage::page_name(wanted.page_kib)));
  }
}

// A container's own limit, judged as if the machine had pages without end.
void check_cgroup(Checklist& list, const hugepage::Roots& roots) {
  const Hugepages& wanted = list.fabric.hugepages;
  const auto allowance = hugepage::cgroup_allowance_bytes(wanted.page_kib, roots);
  if (!allowance) return;
  const hugepage::NodePages endless{-1, wanted.page_kib, kUnlimited, kUnlimited, ""};
  const auto missing = [&](std::uint32_t mib) {
    return hugepage::missing_pages({{-1, mib}}, wanted.page_kib, {endless}, allowance);
  };
  if (const auto fault = missing(kLeastMib); !fault.empty())
    list.fault("cgroup", "hugetlb", "a process " + fault.front().text,
               missing(wanted.per_process_mib).front().command);
  else
    list.good("cgroup", "hugetlb", fmt::format("{} MiB left to this process", *allowance >> 20));
}

}  // namespace

void check_hugepages(Checklist& list) {
  const std::uint32_t page_kib = list.fabric.hugepages.page_kib;
  if (page_kib == 0) return;  // validate() has refused it.
  const hugepage::Roots roots{list.roots.sys, list.roots.proc};
  const auto offered = hugepage::read_pages(roots);
  std::set<std::int32_t> nodes;
  for (const Nic& nic : list.fabric.nics)
    if (nic.driver == NicDriver::kPci) nodes.insert(nic.numa_node);
  for (const std::int32_t node : nodes)
    check_pool(list, pool_of(node, page_kib, offered, list.roots.sys));
  check_cgroup(list, roots);
}

void check_locked_memory(Checklist& list) {
  const auto limit = locked_memory_limit(list.roots.proc);
  const std::uint64_t want = std::uint64_t{list.fabric.hugepages.per_process_mib} << 20;
  const std::string where = list.roots.proc + "/self/limits";
  if (!limit) return;
  // The kernel counts what a NIC may read as locked, but for those who may lock anything.
  if (*limit >= want || has_capability(list.roots.proc, kCapIpcLock))
    list.good(
        "memlock", where,
        *limit == kUnlimited ? std::string("unlimited") : fmt::format("{} KiB", *limit >> 10));
  else
    list.fault("memlock", where,
               fmt::format("max locked memory is {} KiB, a process needs {} KiB", *limit >> 10,
                           want >> 10),
               "ulimit -l unlimited; docker run --ulimit memlock=-1; LimitMEMLOCK=infinity");
}

}  // namespace ztcp::config
