// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "hugepage/sysfs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <tuple>

#include "hugepage/cgroup.h"

namespace ztcp::hugepage {
namespace {

namespace fs = std::filesystem;

std::string read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const fs::path& path) {
  return parse_number(read_line(path));
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

void read_sizes(const fs::path& folder, int node, std::vector<NodePages>& pages) {
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const auto kib = number_in(entry.path().filename().string(), "hugepages-", "kB");
    const auto total = read_number(entry.path() / "nr_hugepages");
    const auto free = read_number(entry.path() / "free_hugepages");
    if (!kib || !total || !free) continue;
    pages.push_back({node, static_cast<std::uint32_t>(*kib), *total, *free, entry.path().string()});
  }
}

// The kernel's name of a size in cgroup files: "2MB", "1GB".
std::string cgroup_size_name(std::uint32_t page_kib) {
  if (page_kib >= 1U << 20U) return std::to_string(page_kib >> 20U) + "GB";
  if (page_kib >= 1U << 10U) return std::to_string(page_kib >> 10U) + "MB";
  return std::to_string(page_kib) + "KB";
}

// What one cgroup leaves; empty when it sets no limit ("max" in version 2, about 2^63 in 1).
std::optional<std::uint64_t> left_in(const fs::path& limit_file, const fs::path& usage_file) {
  const auto limit = read_number(limit_file);
  if (!limit || *limit >= std::uint64_t{1} << 62U) return std::nullopt;
  const std::uint64_t used = read_number(usage_file).value_or(0);
  return *limit > used ? *limit - used : 0;
}

void tighten(std::optional<std::uint64_t>& allowance, std::optional<std::uint64_t> other) {
  if (other && (!allowance || *other < *allowance)) allowance = other;
}

}  // namespace

std::vector<NodePages> read_pages(const Roots& roots) {
  std::vector<NodePages> pages;
  std::error_code missing;
  const fs::path nodes = fs::path(roots.sys) / "devices/system/node";
  for (const auto& entry : fs::directory_iterator(nodes, missing)) {
    const auto node = number_in(entry.path().filename().string(), "node", "");
    if (node) read_sizes(entry.path() / "hugepages", static_cast<int>(*node), pages);
  }
  if (pages.empty()) read_sizes(fs::path(roots.sys) / "kernel/mm/hugepages", -1, pages);
  std::sort(pages.begin(), pages.end(), [](const NodePages& a, const NodePages& b) {
    return std::tie(a.node, a.page_kib) < std::tie(b.node, b.page_kib);
  });
  return pages;
}

bool has_numa_node(int node, const Roots& roots) {
  const fs::path nodes = fs::path(roots.sys) / "devices/system/node";
  std::error_code missing;
  if (!fs::exists(nodes, missing)) return node == 0;
  return fs::exists(nodes / ("node" + std::to_string(node)), missing);
}

std::optional<std::uint64_t> cgroup_allowance_bytes(std::uint32_t page_kib, const Roots& roots) {
  const std::string stem = "hugetlb." + cgroup_size_name(page_kib);
  std::optional<std::uint64_t> allowance;
  for (const Cgroup& cgroup : cgroups_of("hugetlb", roots)) {
    const fs::path folder = cgroup.folder;
    if (cgroup.version == 2) {
      tighten(allowance, left_in(folder / (stem + ".max"), folder / (stem + ".current")));
      tighten(allowance, left_in(folder / (stem + ".rsvd.max"), folder / (stem + ".rsvd.current")));
    } else {
      tighten(allowance,
              left_in(folder / (stem + ".limit_in_bytes"), folder / (stem + ".usage_in_bytes")));
      tighten(allowance, left_in(folder / (stem + ".rsvd.limit_in_bytes"),
                                 folder / (stem + ".rsvd.usage_in_bytes")));
    }
  }
  return allowance;
}

}  // namespace ztcp::hugepage
