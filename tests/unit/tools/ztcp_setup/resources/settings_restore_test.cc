// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/resources/interface_restore.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kNicA;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(SettingsRestore, OnlySettingsThatDifferAreSetAgain) {
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

TEST(SettingsRestore, ASettingThatTheDriverRefusesIsNotedAndTheOthersAreSet) {
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

TEST(SettingsRestore, SettingsAreVerifiedAfterTheDriverAcceptsThem) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.stuck_settings = {"features rx-gro-hw"};
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes), HasSubstr("ens2f0: features rx-gro-hw was off and is on now: "
                                              "the driver did not take it"));
}

TEST(SettingsRestore, SettingsThatADriverNoLongerHasAreNoted) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.state.nics.at(kNicA).pristine.settings.clear();
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes),
              HasSubstr("ens1f0: channels combined was 8 and is unavailable now: "
                        "Operation not supported"));
}

}  // namespace
}  // namespace ztcp::setup
