// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether any NIC of the config can work. A problem of one RDMA device is a warning, since the
// others still work; with problems on all of them every connection of a job is refused.
#include <algorithm>

#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

// True for warnings of a device that refuses all connections.
bool refuses(const config::Check& check, const config::Nic& nic) {
  const bool about_device =
      check.name == "rdma_device" || check.name == "rdma_access" || check.name == "rdma_manager";
  return about_device && check.severity == config::Severity::kWarning &&
         check.problem.where == nic.name;
}

}  // namespace

void judge_serving(const config::Fabric& fabric, std::vector<config::Check>& checks) {
  const auto serves = [&](const config::Nic& nic) {
    return nic.driver != config::NicDriver::kVerbs ||
           std::none_of(checks.begin(), checks.end(),
                        [&](const config::Check& check) { return refuses(check, nic); });
  };
  if (fabric.nics.empty() || std::any_of(fabric.nics.begin(), fabric.nics.end(), serves)) return;
  for (config::Check& check : checks)
    for (const config::Nic& nic : fabric.nics)
      if (refuses(check, nic)) check.severity = config::Severity::kFault;
}

}  // namespace ztcp::setup
