// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/container.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "config/machine/mounts.h"
#include "config/machine/readings.h"

namespace ztcp::config {
namespace {

// Marks of podman and CRI-O; of systemd inside nspawn, LXC and others; of Apptainer. Not docker's
// /.dockerenv: it stays on machines' disks made from images. Docker is known by its mount of
// /etc/hosts.
constexpr const char* kMarks[] = {"/run/.containerenv", "/run/systemd/container",
                                  "/.singularity.d"};
// File systems of image layers and images. Every kind of FUSE counts: no machine boots from one.
constexpr std::string_view kImageTypes[] = {"overlay", "aufs", "squashfs"};

bool has_mounts_of_a_container(Machine& machine) {
  std::string type_of_root;  // Type of the topmost one.
  for (const Mount& mount : mounts_of(machine)) {
    // Runtimes mount a file of their own with the container's host names. lxcfs replaces /proc
    // files in LXC.
    if (mount.folder == "/etc/hosts") return true;
    if (mount.type == "fuse.lxcfs" && mount.folder.starts_with("/proc/")) return true;
    if (mount.folder == "/") type_of_root = mount.type;
  }
  return type_of_root.starts_with("fuse") ||
         std::find(std::begin(kImageTypes), std::end(kImageTypes), type_of_root) !=
             std::end(kImageTypes);
}

}  // namespace

bool in_container(Machine& machine) {
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](const char* mark) { return exists(machine, mark); }) ||
         has_mounts_of_a_container(machine);
}

}  // namespace ztcp::config
