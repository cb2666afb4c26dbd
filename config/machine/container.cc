// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/container.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <string_view>

#include "config/machine/machine.h"
#include "hugepage/cgroup.h"

namespace ztcp::config {
namespace {

// podman and CRI-O; systemd inside nspawn, LXC and others; Apptainer. Not docker's /.dockerenv:
// disks of machines are made from images, and it stays. Docker mounts /etc/hosts.
constexpr const char* kMarks[] = {"/run/.containerenv", "/run/systemd/container",
                                  "/.singularity.d"};
// Image layers and images. Every kind of FUSE counts: no machine boots from one.
constexpr std::string_view kImageTypes[] = {"overlay", "aufs", "squashfs"};

struct MountLine {
  std::string point;
  std::string type;
};

// "id parent major:minor root mount-point options [optional...] - type source ..."
MountLine parse_mount(const std::string& line) {
  MountLine mount;
  std::istringstream words(line);
  std::string word;
  for (int field = 0; field < 5; ++field) words >> mount.point;  // Its fifth.
  while (words >> word && word != "-") {
  }
  words >> mount.type;
  return mount;
}

bool has_mounts_of_a_container(const std::string& proc) {
  std::istringstream lines(read_text(proc + "/self/mountinfo").value_or(""));
  std::string type_of_root;  // Of the topmost one.
  for (std::string line; std::getline(lines, line);) {
    const MountLine mount = parse_mount(line);
    // Runtimes write the names of the container's network into a file of their own. lxcfs answers
    // for /proc in LXC.
    if (mount.point == "/etc/hosts") return true;
    if (mount.type == "fuse.lxcfs" && mount.point.starts_with("/proc/")) return true;
    if (mount.point == "/") type_of_root = mount.type;
  }
  return type_of_root.starts_with("fuse") ||
         std::find(std::begin(kImageTypes), std::end(kImageTypes), type_of_root) !=
             std::end(kImageTypes);
}

// Microseconds of time in each period; 0 of either: no limit.
struct Share {
  std::int64_t quota_us = 0;
  std::int64_t period_us = 0;
};

Share share_of(const hugepage::Cgroup& cgroup) {
  Share share;
  if (cgroup.version == 2) {
    // "max 100000" or "200000 100000"; the root has no such file.
    std::istringstream words(read_line(cgroup.folder + "/cpu.max").value_or(""));
    if (!(words >> share.quota_us >> share.period_us)) return {};
  } else {
    // -1: no limit.
    std::istringstream words(read_line(cgroup.folder + "/cpu.cfs_quota_us").value_or("") + " " +
                             read_line(cgroup.folder + "/cpu.cfs_period_us").value_or(""));
    if (!(words >> share.quota_us >> share.period_us)) return {};
  }
  return share;
}

}  // namespace

bool in_container(const Roots& roots) {
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](const char* mark) { return exists(roots.top + mark); }) ||
         has_mounts_of_a_container(roots.proc);
}

std::size_t cpu_quota(const Roots& roots) {
  std::size_t tightest = 0;
  for (const hugepage::Cgroup& cgroup : hugepage::cgroups_of("cpu", {roots.sys, roots.proc})) {
    const Share share = share_of(cgroup);
    if (share.quota_us <= 0 || share.period_us <= 0) continue;
    const auto cpus =
        static_cast<std::size_t>(std::max<std::int64_t>(1, share.quota_us / share.period_us));
    tightest = tightest == 0 ? cpus : std::min(tightest, cpus);
  }
  return tightest;
}

}  // namespace ztcp::config
