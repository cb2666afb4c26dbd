// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Class A or B: whether an IOMMU stands between NICs and memory, what keeps it away, and which
// devices it can't tell apart.
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

// Why `nics` ("eth1, eth2") have no IOMMU, and the two ways on.
config::Problem no_iommu_problem(const IommuFacts& facts, const std::string& nics);
// What the kernel must be told at boot.
std::vector<std::string> iommu_arguments(const IommuFacts& facts);

// Devices of an IOMMU group that hold it back: those that keep a kernel driver while `taken` go to
// vfio. "0000:00:1f.4 (i801_smbus)".
std::vector<std::string> group_holders(config::Machine& machine, const std::string& group,
                                       const std::set<std::string>& taken);

// A NIC that ztcp has or shall have.
struct GroupedNic {
  std::string name;   // In messages.
  std::string keep;   // What --keep calls it.
  std::string gpu;    // Empty: any process may take the NIC.
  std::string group;  // "17"; empty: none.
};
// vfio opens an IOMMU group for one process, and a process takes the NIC of its GPU: a problem for
// each group that has NICs of several GPUs, or several that are any process's.
std::vector<config::Problem> shared_groups(const std::vector<GroupedNic>& nics);

// The same of NICs that ztcp has, for --check: init can't tell, as one process may drive them all.
std::vector<config::Check> check_groups(const config::Fabric& fabric, config::Machine& machine);

}  // namespace ztcp::setup
