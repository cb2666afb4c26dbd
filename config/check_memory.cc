// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Hugepages and locked memory against what NICs on PCI need.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "config/checklist.h"
#include "config/machine.h"

namespace ztcp::config {
namespace {

constexpr unsigned kCapIpcLock = 14;  // linux/capability.h
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
// Frames of one NIC and the EAL's own; a process that gets less can't start its NIC.
constexpr std::uint64_t kLeastMib = 256;

std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto text = read_line(path);
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  if (*text == "max") return kUnlimited;
  if (std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc{})
    return std::nullopt;
  return number;
}

// "2MB", "1GB": how the hugetlb controller names page sizes.
std::string cgroup_size_name(std::uint32_t page_kib) {
  return page_kib >= 1048576 ? fmt::format("{}GB", page_kib / 1048576)
                             : fmt::format("{}MB", page_kib / 1024);
}

// The tightest limit on the way from this process's group to the root, and where it stands.
struct CgroupLimit {
  std::uint64_t bytes = kUnlimited;
  std::string path;
};

void tighten(CgroupLimit& limit, const std::string& path) {
  const auto bytes = read_number(path);
  if (bytes && *bytes < limit.bytes) limit = {*bytes, path};
}

CgroupLimit cgroup_limit(const Roots& roots, std::uint32_t page_kib) {
  CgroupLimit limit;
  std::string text = read_text(roots.proc + "/self/cgroup").value_or("");
  const std::string size = cgroup_size_name(page_kib);
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // "0::/path" is the unified hierarchy, "4:hugetlb:/path" the old one.
    const bool unified = line.starts_with("0::");
    const auto old = line.find(":hugetlb:");
    if (!unified && old == std::string_view::npos) continue;
    const std::string base = roots.sys + (unified ? "/fs/cgroup" : "/fs/cgroup/hugetlb");
    std::string group(line.substr(unified ? 3 : old + 9));
    while (true) {
      const std::string stem = base + (group == "/" ? "" : group) + "/hugetlb." + size;
      for (const char* name : {".max", ".rsvd.max", ".limit_in_bytes"}) tighten(limit, stem + name);
      if (group.empty() || group == "/") break;
      group.resize(group.rfind('/'));
    }
  }
  return limit;
}

// Judges one pool of pages: those of a node, or of the machine when the NIC's node is unknown.
void check_pool(Checklist& list, std::int32_t node) {
  const Hugepages& wanted = list.fabric.hugepages;
  const std::string pages = fmt::format("hugepages-{}kB", wanted.page_kib);
  const std::string folder =
      list.roots.sys + (node < 0
                            ? "/kernel/mm/hugepages/" + pages
                            : fmt::format("/devices/system/node/node{}/hugepages/{}", node, pages));
  const std::string where = node < 0 ? "this machine" : fmt::format("NUMA node {}", node);
  const std::uint64_t want_pages = std::uint64_t{wanted.per_process_mib} * 1024 / wanted.page_kib;
  const std::string mend = fmt::format("echo {} | sudo tee {}/nr_hugepages", want_pages, folder);
  const auto free_pages = read_number(folder + "/free_hugepages");
  if (!free_pages) {
    list.fault("hugepages", where,
               fmt::format("hugepages.page_kib = {} in the config, but there are no pages of that "
                           "size on {}",
                           wanted.page_kib, where),
               mend);
    return;
  }
  const std::uint64_t free_mib = *free_pages * wanted.page_kib / 1024;
  const std::string what = fmt::format("{} free pages of {} KiB on {} ({} MiB)", *free_pages,
                                       wanted.page_kib, where, free_mib);
  if (free_mib < kLeastMib)
    list.fault("hugepages", where,
               fmt::format("{}, a process needs at least {} MiB", what, kLeastMib), mend);
  else if (free_mib < wanted.per_process_mib)
    list.warning(
        "hugepages", where,
        fmt::format("{}, less than hugepages.per_process_mib = {}", what, wanted.per_process_mib),
        mend);
  else
    list.good("hugepages", where, what);
}

}  // namespace

void check_hugepages(Checklist& list) {
  const std::uint32_t page_kib = list.fabric.hugepages.page_kib;
  if (page_kib == 0) return;  // validate() has refused it.
  std::set<std::int32_t> nodes;
  for (const Nic& nic : list.fabric.nics)
    if (nic.driver == NicDriver::kPci) nodes.insert(nic.numa_node);
  for (const std::int32_t node : nodes) check_pool(list, node);

  const CgroupLimit limit = cgroup_limit(list.roots, page_kib);
  if (limit.bytes >> 20 < kLeastMib)
    list.fault(
        "cgroup", limit.path,
        fmt::format("this process may use {} MiB of hugepages, it needs at least {} MiB",
                    limit.bytes >> 20, kLeastMib),
        fmt::format("give the container hugepages-{}i: {}Mi", page_kib >= 1048576 ? "1G" : "2M",
                    list.fabric.hugepages.per_process_mib));
  else if (limit.bytes != kUnlimited)
    list.good("cgroup", limit.path, fmt::format("{} MiB of hugepages", limit.bytes >> 20));
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
