// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The speed of each NIC, from which NCCL derives the number of channels, and by which it chooses
// between NICs: as the operator states it, else the driver's or the config's, else the instance
// type's.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "tools/ztcp_setup/plan/instance_speed.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

// The speed from --speed for this NIC, by any of its names; a name overrides the speed for all.
std::optional<std::uint32_t> stated(const PlanRequest& request, const config::Nic& nic,
                                    const config::HostNic& host_nic,
                                    std::set<std::string>& unused) {
  for (const std::string& name :
       {host_nic.pci, host_nic.interface, nic.interface, nic.device, nic.name}) {
    const auto found = request.speeds_mbps.find(name);
    if (name.empty() || found == request.speeds_mbps.end()) continue;
    unused.erase(name);
    return found->second;
  }
  return request.speed_mbps;
}

}  // namespace

void decide_speeds(const PlanInput& input, Plan& plan, std::vector<config::Nic>& nics) {
  const auto note = [&](config::Severity severity, std::string where, std::string what,
                        std::string mend) {
    plan.notes.push_back({"speed", severity, {std::move(where), std::move(what), std::move(mend)}});
  };
  const auto instance = instance_speed(input.host);
  std::set<std::string> unused;
  for (const auto& [name, mbps] : input.request.speeds_mbps) unused.insert(name);
  std::vector<std::string> unknown;
  for (config::Nic& nic : nics) {
    const config::HostNic& found = plan.host_nic(nic);
    if (const auto mbps = stated(input.request, nic, found, unused)) {
      nic.speed_mbps = *mbps;
    } else if (!plan.takes_nics() && nic.speed_mbps == 0 && found.speed_mbps != 0) {
      continue;  // Its driver continues to report it.
    } else if (nic.speed_mbps == 0 && instance) {
      nic.speed_mbps = instance->share_mbps(nics.size());
      plan.speed_origin =
          fmt::format("{} has {} Mb/s for all NICs, at most {} for one; --speed overrides this",
                      instance->type, instance->host_mbps, instance->nic_mbps);
    }
    if (nic.speed_mbps == 0) unknown.push_back(nic.name);
  }
  for (const std::string& name : unused)
    note(config::Severity::kFault, "--speed " + name + "=...", "no taken NIC has this name",
         "name an interface or PCI address of the table, or one speed for all: --speed MBPS");
  if (!unknown.empty())
    note(config::Severity::kWarning, fmt::format("{}", fmt::join(unknown, ", ")),
         fmt::format(
             "the speed is unknown, so NCCL is told {} Mb/s and plans its channels with that",
             config::kGuessedSpeedMbps),
         "ztcp_setup --speed MBPS: the network bandwidth of this machine, or of its instance type, "
         "divided among these NICs");
}

}  // namespace ztcp::setup
