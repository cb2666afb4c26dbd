// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kNicA;
using test::nic_resources;
using test::set_up;
using test::undo;
using testing::HasSubstr;

Resources taken_nic() {
  Resources resources{{"the driver", resource::Module{"vfio-pci"}}};
  for (Resource& resource : nic_resources(kNicA)) resources.push_back(std::move(resource));
  return resources;
}

TEST(Access, AppliesToTheGroupsNode) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host, taken_nic()).complete());
  EXPECT_EQ(host.state.nodes.at("/dev/vfio/12").ownership, (Ownership{0660, 0, 990}));
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

// For example by another udev rule.
TEST(Access, AChangedOwnerIsCorrectedByTheNextRun) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host, taken_nic()).complete());
  host.state.nodes.at("/dev/vfio/12").ownership = {0600, 0, 0};
  EXPECT_TRUE(set_up(host, taken_nic()).changed());
  EXPECT_EQ(host.state.nodes.at("/dev/vfio/12").ownership, (Ownership{0660, 0, 990}));
}

TEST(Access, ANicWithoutVfioIsAFault) {
  FakeHost host = bare_machine();
  const Resources alone{{"access", resource::Access{kNicA, "", "ztcp", 0660}}};
  EXPECT_THAT(all_of(set_up(host, alone).faults),
              HasSubstr("0000:3b:00.0: has no vfio group to give access to; mend: ls /dev/vfio"));
}

TEST(Access, AnUnknownGroupIsAFault) {
  FakeHost host = bare_machine();
  host.groups.clear();
  EXPECT_THAT(all_of(set_up(host, taken_nic()).faults), HasSubstr("there is no group ztcp"));
  EXPECT_EQ(host.changes, 0U);
}

}  // namespace
}  // namespace ztcp::setup
