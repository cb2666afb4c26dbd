// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Class A or B: whether an IOMMU protects memory from NICs, why not, and which devices share a
// group.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/check/check.h"
#include "config/problem.h"
#include "config/settings.h"

namespace ztcp::setup {

struct HostClassFacts {
  char letter;          // 'A'
  const char* meaning;  // One sentence for the operator.
};
HostClassFacts facts_of(config::HostClass host_class);

struct IommuFacts {
  enum class Cpu : std::uint8_t { kIntel, kAmd, kOther };
  Cpu cpu = Cpu::kOther;
  bool virtual_machine = false;
  bool in_firmware = false;  // An ACPI table (DMAR, IVRS, IORT) describes one.
};
IommuFacts read_iommu(config::Machine& machine);

// Why `nics` ("eth1, eth2") have no IOMMU, with the two possible remedies.
config::Problem no_iommu_problem(const IommuFacts& facts, const std::string& nics);
// Kernel arguments that switch the IOMMU on.
std::vector<std::string> iommu_arguments(const IommuFacts& facts);

// Devices that block an IOMMU group: they keep a kernel driver while `taken` go to vfio.
// "0000:00:1f.4 (i801_smbus)".
std::vector<std::string> group_holders(config::Machine& machine, const std::string& group,
                                       const std::set<std::string>& taken);

// A NIC that ztcp has or will take.
struct GroupedNic {
  std::string name;   // For messages.
  std::string keep;   // Its name for --keep.
  std::string gpu;    // Empty: any process may take the NIC.
  std::string group;  // "17"; empty: none.
};
// vfio opens an IOMMU group for one process, and a process takes the NIC of its GPU: returns a
// problem for each group with NICs of several GPUs, or with several NICs free for any process.
std::vector<config::Problem> shared_groups(const std::vector<GroupedNic>& nics);

// The same for NICs that ztcp has, for --check: init cannot judge it, as one process may drive them
// all.
std::vector<config::Check> check_groups(const config::Fabric& fabric, config::Machine& machine);

}  // namespace ztcp::setup
