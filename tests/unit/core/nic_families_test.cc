// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/nic_families.h"

#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(NicFamilies, AreFoundByEachOfTheirNames) {
  EXPECT_EQ(family_of_kernel_driver("gvnic")->name, "gVNIC");
  EXPECT_EQ(family_of_kernel_driver("gve")->name, "gVNIC");
  EXPECT_EQ(family_of_dpdk_driver("net_gve")->name, "gVNIC");
  EXPECT_EQ(family_of_pci_id("1ae0:0042")->name, "gVNIC");
  EXPECT_EQ(family_of_pci_id("1d0f:ec21")->name, "ENA");
}

TEST(NicFamilies, AnUnknownOrEmptyNameIsNoFamilys) {
  for (const char* const name : {"", "net_memif", "e1000", "1d0f:efa2"}) {
    EXPECT_EQ(family_of_kernel_driver(name), nullptr) << name;
    EXPECT_EQ(family_of_dpdk_driver(name), nullptr) << name;
    EXPECT_EQ(family_of_pci_id(name), nullptr) << name;
  }
}

TEST(NicFamilies, NoDriverOrIdStandsInTwoRows) {
  std::multiset<std::string> names;
  for (const NicFamily& family : kNicFamilies) {
    for (const std::string_view name :
         {family.dpdk_driver, family.kernel_driver, family.other_kernel_driver})
      if (!name.empty()) names.emplace(name);
    std::istringstream ids{std::string(family.pci_ids)};
    for (std::string id; ids >> id;) {
      EXPECT_EQ(id.size(), 9U) << id;
      names.insert(id);
    }
  }
  for (const std::string& name : names) EXPECT_EQ(names.count(name), 1U) << name;
}

TEST(NicFamilies, OnlyTakenAndBifurcatedNicsHaveADriverOfDpdk) {
  for (const NicFamily& family : kNicFamilies) {
    const bool is_shared = family.dpdk_driver == "net_mlx5";  // The only one of its kind.
    EXPECT_EQ(family.access == NicAccess::kTaken || is_shared, !family.dpdk_driver.empty())
        << family.name;
    if (is_shared) {
      EXPECT_EQ(family.access, NicAccess::kBifurcated);
    }
  }
}

}  // namespace
}  // namespace ztcp
