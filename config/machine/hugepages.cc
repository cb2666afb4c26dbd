// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/hugepages.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "config/machine/cgroup.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::config {
namespace {

using hugepage::NodePages;

constexpr const char* kNodes = "/sys/devices/system/node";

std::optional<std::uint64_t> read_count(Machine& machine, const std::string& path) {
  const auto line = read_line(machine, path);
  return line ? parse_number(*line) : std::nullopt;
}

// The number between a prefix and a suffix: "hugepages-2048kB", "node1".
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view prefix,
                                       std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() < prefix.size() + suffix.size()) return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  return parse_number(name);
}

void read_sizes(Machine& machine, const std::string& folder, int node,
                std::vector<NodePages>& pages) {
  for (const std::string& name : machine.list(folder)) {
    const std::string path = folder + "/" + name;
    const auto kib = number_in(name, "hugepages-", "kB");
    const auto total = read_count(machine, path + "/nr_hugepages");
    const auto free = read_count(machine, path + "/free_hugepages");
    if (kib && total && free)
      pages.push_back({node, static_cast<std::uint32_t>(*kib), *total, *free, path});
  }
}

// The kernel's name of a size in cgroup files: "2MB", "1GB".
std::string cgroup_size_name(std::uint32_t page_kib) {
  if (page_kib >= 1U << 20U) return std::to_string(page_kib >> 20U) + "GB";
  if (page_kib >= 1U << 10U) return std::to_string(page_kib >> 10U) + "MB";
  return std::to_string(page_kib) + "KB";
}

// The rest of one cgroup's limit; empty without a limit ("max" in version 2, about 2^63 in 1).
std::optional<std::uint64_t> left_in(Machine& machine, const std::string& limit_file,
                                     const std::string& usage_file) {
  const auto limit = read_count(machine, limit_file);
  if (!limit || *limit >= std::uint64_t{1} << 62U) return std::nullopt;
  const std::uint64_t used = read_count(machine, usage_file).value_or(0);
  return *limit > used ? *limit - used : 0;
}

void tighten(std::optional<std::uint64_t>& allowance, std::optional<std::uint64_t> other) {
  if (other && (!allowance || *other < *allowance)) allowance = other;
}

}  // namespace

std::vector<NodePages> read_pages(Machine& machine) {
  std::vector<NodePages> pages;
  for (const std::string& name : machine.list(kNodes))
    if (const auto node = number_in(name, "node", ""))
      read_sizes(machine, std::string(kNodes) + "/" + name + "/hugepages", static_cast<int>(*node),
                 pages);
  if (pages.empty()) read_sizes(machine, "/sys/kernel/mm/hugepages", -1, pages);
  std::sort(pages.begin(), pages.end(), [](const NodePages& a, const NodePages& b) {
    return std::tie(a.node, a.page_kib) < std::tie(b.node, b.page_kib);
  });
  return pages;
}

bool has_numa_node(Machine& machine, int node) {
  if (!exists(machine, kNodes)) return node == 0;
  return exists(machine, std::string(kNodes) + "/node" + std::to_string(node));
}

std::optional<std::uint64_t> cgroup_allowance_bytes(Machine& machine, std::uint32_t page_kib) {
  const std::string stem = "/hugetlb." + cgroup_size_name(page_kib);
  std::optional<std::uint64_t> allowance;
  for (const Cgroup& cgroup : cgroups_of(machine, "hugetlb")) {
    const std::string base = cgroup.folder + stem;
    const std::string limit = cgroup.version == 2 ? "max" : "limit_in_bytes";
    const std::string usage = cgroup.version == 2 ? "current" : "usage_in_bytes";
    for (const char* kind : {".", ".rsvd."})
      tighten(allowance, left_in(machine, base + kind + limit, base + kind + usage));
  }
  return allowance;
}

}  // namespace ztcp::config
