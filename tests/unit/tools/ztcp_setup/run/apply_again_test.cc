// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Settings that the systemd unit restores at each boot.
#include <cerrno>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::Killed;
using test::set_up;
using test::undo;
using testing::HasSubstr;

TEST(ApplyAgain, SettingsLostAtBootAreAppliedAgain) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  const FakeHost::State whole = host.state;
  host.boot();
  auto journal = Journal::open(host);
  const Outcome again = apply_after_boot(host, *journal, {});
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  expect_same(host.state, whole);
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(ApplyAgain, AGroupsNumberComesFromTheJournal) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const FakeHost::State whole = host.state;
  host.boot();
  const auto groups = std::exchange(host.groups, {});
  auto journal = Journal::open(host);
  const Outcome early = apply_after_boot(host, *journal, {});
  EXPECT_TRUE(early.complete()) << all_of(early.faults);
  expect_same(host.state, whole);
  host.groups = groups;
  EXPECT_TRUE(undo(host).complete());
}

TEST(ApplyAgain, AnInterruptedSetUpIsNotContinuedAtBoot) {
  FakeHost host = bare_machine();
  host.kill_at(40, FakeHost::When::kBefore);
  EXPECT_THROW(set_up(host), Killed);
  host.kill_at(0, FakeHost::When::kBefore);
  host.boot();
  const auto changes = host.changes;
  auto journal = Journal::open(host);
  const Outcome again = apply_after_boot(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("interrupted"));
  EXPECT_EQ(host.changes, changes);
}

}  // namespace
}  // namespace ztcp::setup
