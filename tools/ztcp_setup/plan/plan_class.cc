// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <set>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "tools/ztcp_setup/plan/iommu.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

using config::Severity;

// The limit of locked memory is lifted for these accounts. Company directories have names such as
// "domain users".
void judge_account_names(const PlanInput& input, Plan& plan) {
  for (const std::string& name : {input.user(), input.group()})
    if (name.find_first_of(" \t") != std::string::npos)
      plan.note(
          Severity::kFault, "account", name,
          "has a blank in its name, which /etc/security/limits.d does not allow, so its limit "
          "of locked memory can't be lifted",
          "sudo groupadd --system ztcp, add the users to it, ztcp_setup --group ztcp");
}

void judge_class_a(const PlanInput& input, const std::set<std::string>& taken, Plan& plan) {
  judge_account_names(input, plan);
  if (input.request.no_iommu)
    plan.note(Severity::kWarning, "iommu", "--no-iommu",
              "not needed: this machine has an IOMMU in use", "omit --no-iommu");
  std::set<std::string> groups;
  std::vector<GroupedNic> grouped;
  for (const config::Pair& pair : plan.pairs) {
    const config::HostNic& nic = plan.topology.nics[pair.nic];
    grouped.push_back({name_of(nic), name_of(nic),
                       pair.gpu ? plan.topology.gpus[*pair.gpu].pci : "", nic.iommu_group});
    if (!groups.insert(nic.iommu_group).second) continue;
    const auto holders = group_holders(input.host, nic.iommu_group, taken);
    if (!holders.empty())
      plan.note(Severity::kFault, "group", name_of(nic),
                fmt::format("shares IOMMU group {} with {}, which keep their kernel drivers; vfio "
                            "gives a group to one owner as a whole",
                            nic.iommu_group, fmt::join(holders, ", ")),
                fmt::format("use another slot, switch ACS on in the BIOS, or ztcp_setup --keep {}",
                            name_of(nic)));
  }
  for (config::Problem& problem : shared_groups(grouped)) plan.fault("group", std::move(problem));
}

// `without` are the NICs of plan.pairs without a protecting IOMMU.
void judge_class_b(const PlanInput& input, const std::vector<std::string>& without, Plan& plan) {
  // Once given on the command line it is kept in the config.
  const bool allowed =
      input.request.no_iommu ||
      (input.existing && input.existing->host.host_class == config::HostClass::kNoIommu);
  if (!allowed)
    return plan.fault("iommu", no_iommu_problem(read_iommu(input.host),
                                                fmt::format("{}", fmt::join(without, ", "))));
  if (without.size() < plan.pairs.size())
    return plan.note(
        Severity::kFault, "iommu", "IOMMU",
        fmt::format("{} of {} NICs have an IOMMU group, {} have none; vfio can't mix both",
                    plan.pairs.size() - without.size(), plan.pairs.size(),
                    fmt::join(without, ", ")),
        fmt::format("ztcp_setup --keep {}", fmt::join(without, " --keep ")));
  plan.note(Severity::kWarning, "iommu", "--no-iommu",
            "a NIC writes to any address it is given: any job with a NIC could take over this "
            "machine, and the kernel is tainted",
            "for a shared machine use one with an IOMMU");
}

}  // namespace

void decide_host(const PlanInput& input, Plan& plan, config::Fabric& fabric) {
  fabric.host.machine_id = config::read_line(input.host, "/etc/machine-id").value_or("");
  fabric.host.hostname = config::read_line(input.host, "/proc/sys/kernel/hostname").value_or("");
  fabric.host.user = input.user();
  fabric.host.group = input.group();
  if (!plan.takes_nics()) {
    fabric.host.host_class = config::HostClass::kUnprivileged;
    if (plan.verbs) judge_account_names(input, plan);
    return;
  }
  std::vector<std::string> without;
  std::set<std::string> taken;
  for (const config::Pair& pair : plan.pairs) {
    const config::HostNic& nic = plan.topology.nics[pair.nic];
    taken.insert(nic.pci);
    if (!nic.protects) without.push_back(name_of(nic));
  }
  if (without.empty()) {
    fabric.host.host_class = config::HostClass::kIommu;
    return judge_class_a(input, taken, plan);
  }
  if (!input.request.ask_iommu) {
    fabric.host.host_class = config::HostClass::kNoIommu;
    return judge_class_b(input, without, plan);
  }
  fabric.host.host_class = config::HostClass::kIommu;
  plan.awaits_reboot = true;
  plan.note(Severity::kWarning, "iommu", "IOMMU",
            "requested for the next boot; no NIC is taken before that",
            "reboot, then run ztcp_setup again without --iommu");
}

}  // namespace ztcp::setup
