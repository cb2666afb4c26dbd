// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/iommu.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "config/machine/readings.h"

namespace ztcp::setup {

HostClassFacts facts_of(config::HostClass host_class) {
  switch (host_class) {
    case config::HostClass::kIommu:
      return {'A',
              "IOMMU present: an ordinary user drives the NICs through vfio, sends are zero-copy"};
    case config::HostClass::kNoIommu:
      return {'B',
              "no IOMMU: vfio without protection; processes need CAP_SYS_RAWIO and CAP_SYS_ADMIN, "
              "sends are copied once, and a NIC could reach any memory of this machine"};
    case config::HostClass::kUnprivileged:
      break;
  }
  return {
      'C',
      "interfaces and RDMA devices that stay with the kernel, or software NICs: no privilege, no "
      "hugepages, and no kernel bypass except with RDMA"};
}

IommuFacts read_iommu(config::Machine& machine) {
  IommuFacts facts;
  const std::string cpu = config::text_of(machine, "/proc/cpuinfo");
  if (cpu.find("GenuineIntel") != std::string::npos) facts.cpu = IommuFacts::Cpu::kIntel;
  if (cpu.find("AuthenticAMD") != std::string::npos) facts.cpu = IommuFacts::Cpu::kAmd;
  facts.virtual_machine = cpu.find(" hypervisor") != std::string::npos;
  for (const char* table : {"DMAR", "IVRS", "IORT"})
    facts.in_firmware = facts.in_firmware ||
                        config::exists(machine, std::string("/sys/firmware/acpi/tables/") + table);
  return facts;
}

std::vector<std::string> iommu_arguments(const IommuFacts& facts) {
  // AMD's IOMMU is on if the firmware enables it. pt: the kernel's own drivers bypass it at no
  // cost.
  if (facts.cpu == IommuFacts::Cpu::kIntel) return {"intel_iommu=on", "iommu=pt"};
  return {"iommu=pt"};
}

config::Problem no_iommu_problem(const IommuFacts& facts, const std::string& nics) {
  config::Problem problem;
  problem.where = "IOMMU";
  problem.what = fmt::format("no IOMMU group for {}, wanted one for each (class A); ", nics);
  const std::string without =
      "or, accepting that a NIC could then reach any memory of this machine: ztcp_setup --no-iommu";
  if (facts.in_firmware) {
    problem.what += "the firmware describes an IOMMU that the kernel does not use";
    problem.mend = "ztcp_setup --iommu and a reboot; " + without;
  } else if (facts.virtual_machine) {
    problem.what += "this virtual machine was given none";
    problem.mend = "an instance or hypervisor setting with a virtual IOMMU; " + without;
  } else {
    problem.what += "the firmware describes none";
    problem.mend = fmt::format(
        "switch on {} in the BIOS, then ztcp_setup --iommu and a reboot; {}",
        facts.cpu == IommuFacts::Cpu::kAmd ? "AMD-Vi (IOMMU)" : "VT-d (IOMMU)", without);
  }
  return problem;
}

std::vector<std::string> group_holders(config::Machine& machine, const std::string& group,
                                       const std::set<std::string>& taken) {
  std::vector<std::string> holders;
  const std::string devices = "/sys/kernel/iommu_groups/" + group + "/devices";
  for (const std::string& pci : machine.list(devices)) {
    if (taken.contains(pci)) continue;
    const std::string folder = config::pci_folder(pci);
    const auto driver = config::link_name(machine, folder + "/driver");
    // Bridges don't matter to a group, nor do devices without a driver.
    const bool bridge =
        config::read_line(machine, folder + "/class").value_or("").starts_with("0x0604");
    if (!driver || bridge || *driver == "vfio-pci" || *driver == "pci-stub") continue;
    holders.push_back(fmt::format("{} ({})", pci, *driver));
  }
  return holders;
}

std::vector<config::Problem> shared_groups(const std::vector<GroupedNic>& nics) {
  std::map<std::string, std::vector<const GroupedNic*>> groups;
  for (const GroupedNic& nic : nics)
    if (!nic.group.empty()) groups[nic.group].push_back(&nic);
  std::vector<config::Problem> problems;
  for (const auto& [group, members] : groups) {
    const std::string& gpu = members.front()->gpu;
    if (members.size() < 2 ||
        (!gpu.empty() && std::all_of(members.begin(), members.end(),
                                     [&](const GroupedNic* nic) { return nic->gpu == gpu; })))
      continue;
    std::vector<std::string> names;
    std::vector<std::string> keep;
    for (const GroupedNic* nic : members) {
      names.push_back(nic->name);
      keep.push_back("--keep " + nic->keep);
    }
    problems.push_back(
        {fmt::format("{}", fmt::join(names, ", ")),
         fmt::format(
             "share IOMMU group {}, which vfio opens for one process only; each NIC is to be "
             "driven by another process",
             group),
         // Keeping only one of them is not enough: a group goes to vfio as a whole.
         fmt::format("use another slot, switch ACS on in the BIOS, or ztcp_setup {} and NICs "
                     "elsewhere",
                     fmt::join(keep, " "))});
  }
  return problems;
}

std::vector<config::Check> check_groups(const config::Fabric& fabric, config::Machine& machine) {
  std::vector<GroupedNic> nics;
  for (const config::Nic& nic : fabric.nics)
    if (nic.driver == config::NicDriver::kPci)
      nics.push_back({fmt::format("{} ({})", nic.name, nic.pci), nic.pci,
                      nic.gpu_pci.empty() ? nic.gpu_uuid : nic.gpu_pci,
                      config::iommu_group(machine, nic.pci)});
  std::vector<config::Check> checks;
  for (config::Problem& problem : shared_groups(nics))
    checks.push_back({"group", config::Severity::kFault, std::move(problem)});
  if (checks.empty() && !nics.empty())
    checks.push_back(
        {"group", config::Severity::kGood, {"IOMMU", "no two processes' NICs share a group", ""}});
  return checks;
}

}  // namespace ztcp::setup
