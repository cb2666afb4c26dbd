// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Class A or B: whether an IOMMU stands between NICs and memory, what keeps it away, and which
// devices it can't tell apart.
#pragma once

#include <set>
#include <string>
#include <vector>

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
IommuFacts read_iommu(const std::string& root);

// Why `nics` ("eth1, eth2") have no IOMMU, and the two ways on.
config::Problem no_iommu_problem(const IommuFacts& facts, const std::string& nics);
// What the kernel must be told at boot.
std::vector<std::string> iommu_arguments(const IommuFacts& facts);

// Devices of an IOMMU group that hold it back: those that keep a kernel driver while `taken` go to
// vfio. "0000:00:1f.4 (i801_smbus)".
std::vector<std::string> group_holders(const std::string& root, const std::string& group,
                                       const std::set<std::string>& taken);

}  // namespace ztcp::setup
