// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Returning interfaces, on a machine that may have other interfaces with their names by then.
#include "tools/ztcp_setup/resources/interface_restore.h"

#include <cerrno>

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
using test::kNicB;
using test::kPages0;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::SizeIs;

TEST(InterfaceRestore, AFailedRestoreIsAFaultAndTheRestGoesOn) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const std::string route = "ip route add 10.99.0.0/16 via 10.77.1.1";
  host.errors["add " + route] = ENETUNREACH;
  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("sudo " + route));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  EXPECT_EQ(host.state.values.at(kPages0), "0");
  EXPECT_EQ(host.facts(Journal::kPath).kind, FileKind::kFile);
  host.errors.clear();
  const Outcome again = undo(host);
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  EXPECT_EQ(host.facts(Journal::kPath).kind, FileKind::kAbsent);
}

TEST(InterfaceRestore, ANetworkManagerMayFlushWhatIsRestored) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  host.flushes = 3;
  const Outcome undone = undo(host);
  EXPECT_EQ(host.flushes, 0U);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(InterfaceRestore, InterfacesGetTheirNamesBackWithoutUdev) {
  FakeHost host = bare_machine();
  host.renames_interfaces = false;
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(InterfaceRestore, ANameTakenByAnotherInterfaceIsAFault) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.renames_interfaces = false;
  InterfaceState stranger;
  stranger.name = "ens1f0";
  stranger.mac = stranger.permanent_mac = "52:54:00:00:00:99";
  host.state.links["ens1f0"] = stranger;
  host.errors["name eth0 ens1f0"] = EEXIST;
  host.errors["name eth1 ens1f0"] = EEXIST;
  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("its interface ens1f0 did not come back"));
  EXPECT_EQ(host.state.links.at("ens1f0"), stranger);
}

// Another VLAN got the same name meanwhile: on another NIC, or with another tag.
TEST(InterfaceRestore, AnotherVlanWithTheSameNameIsAFault) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  InterfaceState stranger;
  stranger.name = "ens1f0.7";
  stranger.kind = "vlan";
  stranger.info = "0600010007000000";
  stranger.mac = stranger.permanent_mac = "52:54:00:00:00:99";
  host.state.links["ens1f0.7"] = stranger;
  InterfaceState other_tag = stranger;
  other_tag.name = "ens2f0.7";
  other_tag.info = "0600010008000000";
  InterfaceState only_name;
  only_name.name = other_tag.name;
  FakeHost::Nic& b = host.state.nics.at(kNicB);
  b.pristine.children = {only_name};
  host.state.links["ens2f0.7"] = other_tag;

  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults),
              HasSubstr("ens1f0.7: is another interface than the vlan that ens1f0 had"));
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("ip link set dev ens2f0.7 name NAME"));
  EXPECT_THAT(outcome.faults, SizeIs(2));
  EXPECT_EQ(host.state.links.at("ens1f0.7"), stranger);
  EXPECT_EQ(host.state.links.at("ens2f0.7"), other_tag);
  EXPECT_THAT(host.state.links.at("ens1f0").addresses, SizeIs(1));

  host.state.links.erase("ens1f0.7");
  host.state.links.erase("ens2f0.7");
  host.state.links.at("ens2f0").children.clear();
  const Outcome again = undo(host);
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  EXPECT_EQ(host.state.links.at("ens1f0.7").info, stranger.info);
  EXPECT_THAT(host.state.links.at("ens1f0.7").addresses, SizeIs(1));
}

}  // namespace
}  // namespace ztcp::setup
