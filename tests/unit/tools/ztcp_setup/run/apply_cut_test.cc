// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up and undo killed at every change they make, and interrupted by a power failure.
#include <fmt/format.h>
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
using test::kPages0;
using test::set_up;
using test::undo;
using testing::HasSubstr;

void expect_set_up(FakeHost& host, const FakeHost::State& wanted) {
  const Outcome done = set_up(host);
  EXPECT_TRUE(done.complete()) << all_of(done.faults);
  expect_same(host.state, wanted);
}

void expect_undone(FakeHost& host, const FakeHost::State& wanted) {
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, wanted);
}

// Runs `action` until it survives, killed at its first change, its second, and so on.
template <class Action, class Check>
void kill_everywhere(const FakeHost& start, const Action& action, const Check& check) {
  for (const auto when :
       {FakeHost::When::kBefore, FakeHost::When::kHalfWay, FakeHost::When::kAfter}) {
    bool killed = true;
    for (std::uint64_t n = 1; killed; ++n) {
      ASSERT_LT(n, 1000U);
      FakeHost host = start;
      host.kill_at(n, when);
      killed = false;
      try {
        action(host);
      } catch (const Killed&) {
        killed = true;
      }
      host.kill_at(0, when);
      // Only a file can exist in part.
      if (killed && when == FakeHost::When::kHalfWay && !host.log.back().starts_with("create"))
        continue;
      SCOPED_TRACE(fmt::format("killed at change {} ({}): {}", n, static_cast<int>(when),
                               host.log.empty() ? "" : host.log.back()));
      check(host);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Apply, UndoWorksAfterAnyInterruption) {
  const FakeHost start = bare_machine();
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) { expect_undone(host, start.state); });
}

TEST(Apply, ASecondRunWorksAfterAnyInterruption) {
  const FakeHost start = bare_machine();
  FakeHost whole = start;
  ASSERT_TRUE(set_up(whole).complete());
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) {
        expect_set_up(host, whole.state);
        expect_undone(host, start.state);
      });
}

TEST(Apply, AfterAnInterruptionAllButPagesIsReverted) {
  const FakeHost start = bare_machine();
  FakeHost whole = start;
  ASSERT_TRUE(set_up(whole).complete());
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) {
        const std::string pages = host.state.values.at(kPages0);
        auto journal = Journal::open(host);
        ASSERT_TRUE(journal);
        const Outcome back = revert_half_done(host, *journal, {});
        EXPECT_TRUE(back.complete()) << all_of(back.faults);
        EXPECT_EQ(host.state.values.at(kPages0), pages);
        expect_set_up(host, whole.state);
        expect_undone(host, start.state);
      });
}

TEST(Apply, AnInterruptedUndoCanBeRepeatedOrSetUpAgain) {
  const FakeHost start = bare_machine();
  FakeHost whole = start;
  ASSERT_TRUE(set_up(whole).complete());
  kill_everywhere(
      whole, [](FakeHost& host) { undo(host); },
      [&](FakeHost& host) {
        FakeHost other = host;
        expect_undone(host, start.state);
        ASSERT_TRUE(set_up(other).complete());
        expect_undone(other, start.state);
      });
}

TEST(Apply, UndoAndASecondRunWorkAfterAnyPowerCut) {
  const FakeHost start = bare_machine();
  FakeHost booted = start;
  booted.boot();
  const auto undo_and_compare = [&](FakeHost& host) {
    const Outcome undone = undo(host);
    EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
    // A boot loses addresses; undo restores them if it had recorded them.
    for (const auto& [name, link] : host.state.links) {
      if (!booted.state.links.contains(name)) {
        EXPECT_THAT(name, HasSubstr(".7"));
      }
    }
    host.state.links = booted.state.links;
    expect_same(host.state, booted.state);
  };
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) {
        host.boot();
        FakeHost other = host;
        undo_and_compare(host);
        const Outcome again = set_up(other);
        EXPECT_TRUE(again.complete()) << all_of(again.faults);
        EXPECT_EQ(other.state.values.at(kPages0), "20");
        undo_and_compare(other);
      });
}

}  // namespace
}  // namespace ztcp::setup
