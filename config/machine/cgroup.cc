// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/cgroup.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::config {
namespace {

namespace fs = std::filesystem;

// CPU time per period in microseconds; 0 in either: no limit ("max" in version 2, -1 in 1).
struct Share {
  std::uint64_t quota_us = 0;
  std::uint64_t period_us = 0;
};

Share share_of(Machine& machine, const Cgroup& cgroup) {
  const auto line = [&](const char* file) {
    return read_line(machine, cgroup.folder + file).value_or("");
  };
  // "max 100000" or "200000 100000"; the root has no such file.
  const std::string text = cgroup.version == 2
                               ? line("/cpu.max")
                               : line("/cpu.cfs_quota_us") + " " + line("/cpu.cfs_period_us");
  const auto words = words_of(text);
  if (words.size() < 2) return {};
  return {parse_number(words[0]).value_or(0), parse_number(words[1]).value_or(0)};
}

}  // namespace

std::vector<Cgroup> cgroups_of(Machine& machine, std::string_view controller) {
  const fs::path mount = "/sys/fs/cgroup";
  std::vector<Cgroup> cgroups;
  const std::string memberships = text_of(machine, "/proc/self/cgroup");
  for (const std::string_view line : lines_of(memberships)) {
    // "hierarchy:controllers:path"; version 2 leaves the middle empty.
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const int version = controllers.empty() ? 2 : 1;
    if (version == 1 && !lists_word(controllers, controller)) continue;
    const fs::path top = version == 2 ? mount : mount / controller;
    fs::path at = fs::path(line.substr(second + 1)).relative_path();
    for (; !at.empty(); at = at.parent_path()) cgroups.push_back({top / at, version});
    cgroups.push_back({top, version});
  }
  return cgroups;
}

std::size_t cpu_quota(Machine& machine) {
  std::size_t tightest = 0;
  for (const Cgroup& cgroup : cgroups_of(machine, "cpu")) {
    const Share share = share_of(machine, cgroup);
    if (share.quota_us == 0 || share.period_us == 0) continue;
    const auto cpus =
        static_cast<std::size_t>(std::max<std::uint64_t>(1, share.quota_us / share.period_us));
    tightest = tightest == 0 ? cpus : std::min(tightest, cpus);
  }
  return tightest;
}

}  // namespace ztcp::config
