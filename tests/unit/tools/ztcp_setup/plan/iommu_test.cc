// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/iommu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::setup {
namespace {

using config::Severity;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(SharedGroups, OnlyNicsOfOneGpuMayShare) {
  EXPECT_THAT(shared_groups({{"eth1", "eth1", "gpu0", "7"}, {"eth2", "eth2", "gpu0", "7"}}),
              IsEmpty());
  EXPECT_THAT(shared_groups({{"eth1", "eth1", "gpu0", "7"}, {"eth2", "eth2", "gpu1", "8"}}),
              IsEmpty());
  EXPECT_THAT(shared_groups({{"eth1", "eth1", "gpu0", "7"}, {"eth2", "eth2", "gpu1", "7"}}),
              SizeIs(1));
  EXPECT_THAT(shared_groups({{"eth1", "eth1", "gpu0", "7"}, {"eth2", "eth2", "", "7"}}), SizeIs(1));
}

TEST(SharedGroups, NicsFreeForAnyProcessMayNotShare) {
  EXPECT_THAT(shared_groups({{"eth1", "eth1", "", "7"}, {"eth2", "eth2", "", "7"}}), SizeIs(1));
  EXPECT_THAT(shared_groups({{"eth1", "eth1", "", ""}, {"eth2", "eth2", "", ""}}), IsEmpty())
      << "no groups: no IOMMU";
}

// Two ports of one card, paired with different GPUs.
struct GroupsScene {
  ztcp::test::Tree tree{
      "pci path=pci0000:00/0000:02:00.0 id=8086:1572 class=020000 numa=0 driver=vfio-pci group=17\n"
      "pci path=pci0000:00/0000:02:00.1 id=8086:1572 class=020000 numa=0 driver=vfio-pci "
      "group=17\n"};
  config::Fabric fabric;
  GroupsScene() {
    for (const char* pci : {"0000:02:00.0", "0000:02:00.1"}) {
      config::Nic& nic = fabric.nics.emplace_back();
      nic.driver = config::NicDriver::kPci;
      nic.pci = pci;
      nic.name = "ztcp" + std::to_string(fabric.nics.size() - 1);
      nic.gpu_pci = "0000:00:0" + std::to_string(fabric.nics.size()) + ".0";
    }
  }
  std::vector<config::Check> checks() const {
    config::LiveMachine machine(tree.root());
    return check_groups(fabric, machine);
  }
};

TEST(CheckGroups, NamesTheNicsTheGroupAndTheWayOut) {
  const GroupsScene scene;
  const auto checks = scene.checks();
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].name, "group");
  EXPECT_EQ(checks[0].severity, Severity::kFault);
  EXPECT_EQ(checks[0].problem.where, "ztcp0 (0000:02:00.0), ztcp1 (0000:02:00.1)");
  EXPECT_THAT(checks[0].problem.what, HasSubstr("share IOMMU group 17"));
  EXPECT_THAT(checks[0].problem.mend, HasSubstr("--keep 0000:02:00.0 --keep 0000:02:00.1"));
}

TEST(CheckGroups, OneGroupPerNicIsGood) {
  GroupsScene scene;
  scene.fabric.nics.pop_back();
  const auto checks = scene.checks();
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].severity, Severity::kGood);
  scene.fabric.nics[0].driver = config::NicDriver::kMemif;
  EXPECT_THAT(scene.checks(), IsEmpty());
}

}  // namespace
}  // namespace ztcp::setup
