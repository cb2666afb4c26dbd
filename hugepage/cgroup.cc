// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "hugepage/cgroup.h"

#include <filesystem>
#include <fstream>

namespace ztcp::hugepage {

namespace fs = std::filesystem;

std::vector<Cgroup> cgroups_of(std::string_view controller, const Roots& roots) {
  const std::string name(controller);
  const fs::path mount = fs::path(roots.sys) / "fs/cgroup";
  std::vector<Cgroup> cgroups;
  std::ifstream memberships(fs::path(roots.proc) / "self/cgroup");
  for (std::string line; std::getline(memberships, line);) {
    // "hierarchy:controllers:path"; version 2 has neither number nor controllers.
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const int version = controllers.empty() ? 2 : 1;
    if (version == 1 && ("," + controllers + ",").find("," + name + ",") == std::string::npos)
      continue;
    const fs::path top = version == 2 ? mount : mount / name;
    fs::path at = fs::path(line.substr(second + 1)).relative_path();
    for (; !at.empty(); at = at.parent_path()) cgroups.push_back({top / at, version});
    cgroups.push_back({top, version});
  }
  return cgroups;
}

}  // namespace ztcp::hugepage
