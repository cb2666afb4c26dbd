// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs that are given back: to drivers, names and settings that may have changed.
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
using testing::IsEmpty;
using testing::SizeIs;

TEST(Apply, ANicThatVfioRefusesIsGivenBackAtOnce) {
  FakeHost host = bare_machine();
  host.bind_fails = true;
  const auto links = host.state.links;
  const Outcome outcome = set_up(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr(kNicA));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "virtio-pci");
  EXPECT_EQ(host.state.links, links);
}

TEST(Apply, ANicInUseIsNotRevertedAndTheHolderIsNamed) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.holders["/dev/vfio/13"] = {4711, "python3"};
  const auto changes = host.changes;
  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("process 4711 (python3) holds /dev/vfio/13"));
  EXPECT_THAT(all_of(outcome.faults), HasSubstr(kNicB));
  EXPECT_EQ(host.changes, changes);
}

TEST(Apply, WhatCanNotBeRestoredIsAFaultAndTheRestGoesOn) {
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

TEST(Apply, ANetworkManagerMayFlushWhatIsRestored) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  host.flushes = 3;
  const Outcome undone = undo(host);
  EXPECT_EQ(host.flushes, 0U);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(Apply, OnlySettingsThatDifferAreSetAgain) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const auto changes = static_cast<std::ptrdiff_t>(host.log.size());
  const Outcome undone = undo(host);
  EXPECT_THAT(undone.notes, IsEmpty()) << all_of(undone.notes);
  std::vector<std::string> set;
  std::copy_if(host.log.begin() + changes, host.log.end(), std::back_inserter(set),
               [](const std::string& one) { return one.starts_with("ethtool"); });
  EXPECT_THAT(
      set,
      testing::UnorderedElementsAre(
          "ethtool -G ens1f0 rx 4096 tx 1024", "ethtool -K ens1f0 rx-gro-hw off",
          "ethtool -A ens1f0 autoneg off rx on", "ethtool --set-priv-flags ens1f0 legacy-rx on",
          "ethtool -G ens2f0 rx 4096 tx 1024", "ethtool -K ens2f0 rx-gro-hw off",
          "ethtool -A ens2f0 autoneg off rx on", "ethtool --set-priv-flags ens2f0 legacy-rx on"));
}

TEST(Apply, ASettingThatTheDriverRefusesIsNotedAndTheOthersAreSet) {
  FakeHost host = bare_machine();
  FakeHost::State wanted = host.state;
  wanted.links.at("ens1f0").settings.at(1).values.at(0).second = 256;
  ASSERT_TRUE(set_up(host).complete());
  host.errors["ethtool -G ens1f0 rx 4096 tx 1024"] = EINVAL;
  host.errors["ethtool -G ens1f0 rx 4096"] = EINVAL;
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  ASSERT_THAT(undone.notes, SizeIs(1));
  EXPECT_EQ(undone.notes.front().where, "ens1f0");
  EXPECT_EQ(undone.notes.front().what, "ring rx was 4096 and is 256 now: Invalid argument");
  EXPECT_EQ(undone.notes.front().mend, "sudo ethtool -G ens1f0 rx 4096");
  expect_same(host.state, wanted);
}

TEST(Apply, ADriverIsNotBelievedThatItTookASetting) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.stuck_settings = {"features rx-gro-hw"};
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes), HasSubstr("ens2f0: features rx-gro-hw was off and is on now: "
                                              "the driver did not take it"));
}

TEST(Apply, SettingsThatADriverNoLongerHasAreNoted) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.state.nics.at(kNicA).pristine.settings.clear();
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes),
              HasSubstr("ens1f0: channels combined was 8 and is not to be had now: "
                        "Operation not supported"));
}

TEST(Apply, InterfacesGetTheirNamesBackWithoutUdev) {
  FakeHost host = bare_machine();
  host.renames_interfaces = false;
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(Apply, ANameThatAnotherInterfaceHasIsAFaultAndThatOneIsLeftAlone) {
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

// Somebody gave a VLAN the same name meanwhile: on another NIC, or with another tag.
TEST(Apply, AVlanThatOnlyHasTheNameOfOursIsAFaultAndIsLeftAlone) {
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

TEST(Apply, UndoLeavesNicsAloneThatOnlyLookLikeThoseOfTheJournal) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.state.nics.at(kNicA).pristine.mac = "52:54:00:00:0c:01";
  host.state.nics.at(kNicA).pristine.permanent_mac = "52:54:00:00:0c:01";
  host.state.nics.at(kNicB).pristine.mac = "52:54:00:00:0c:02";
  host.state.nics.at(kNicB).pristine.permanent_mac = "52:54:00:00:0c:02";
  host.boot();
  const auto links = host.state.links;
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete()) << all_of(outcome.faults);
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("0000:3b:00.0: is another NIC (ens1f0, "
                                               "52:54:00:00:0c:01) than set-up took over"));
  EXPECT_EQ(host.state.links, links);
  EXPECT_EQ(host.facts(Journal::kPath).kind, FileKind::kAbsent);
}

}  // namespace
}  // namespace ztcp::setup
