// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The output of a dry run about refusals, reverts and an interrupted run.
#include "tools/ztcp_setup/run/preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::all_resources;
using test::bare_machine;
using test::FakeHost;
using test::Killed;
using test::kNicB;
using test::set_up;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Plan plan_of(const Resources& resources) {
  Plan plan;
  plan.fabric.emplace();
  plan.resources = resources;
  return plan;
}
TEST(PreviewOfARun, FaultsOfTheRunAreReported) {
  FakeHost host = bare_machine();
  host.add_folder("/usr/local/tfabric", {0777, 0, 0});
  host.programs.erase("grubby");
  Plan plan = plan_of(all_resources());
  preview_run(host, Mode::kFresh, plan);
  config::Problems told;
  for (const config::Check& note : plan.notes) {
    EXPECT_EQ(note.severity, config::Severity::kFault);
    told.push_back(note.problem);
  }
  EXPECT_EQ(all_of(told), all_of(set_up(host).faults));
  EXPECT_THAT(all_of(told), HasSubstr("/usr/local/tfabric: is writable by others"));
  EXPECT_THAT(all_of(told), HasSubstr("grubby, which changes it, is not installed"));
  EXPECT_EQ(host.changes, 0U);
}

// As in --add itself.
TEST(PreviewOfARun, NothingIsAddedToAnIncompleteSetUp) {
  FakeHost host = bare_machine();
  Plan bare = plan_of(all_resources());
  preview_run(host, Mode::kAdd, bare);
  ASSERT_EQ(bare.notes.size(), 1U);
  EXPECT_EQ(bare.notes.front().severity, config::Severity::kFault);
  EXPECT_THAT(bare.notes.front().problem.what, HasSubstr("not set up"));

  host.kill_at(5, FakeHost::When::kAfter);
  EXPECT_THROW(set_up(host), Killed);
  Plan cut = plan_of(all_resources());
  preview_run(host, Mode::kAdd, cut);
  ASSERT_FALSE(cut.notes.empty());
  EXPECT_THAT(cut.notes.front().problem.what, HasSubstr("no complete set-up to add to"));
  // A run that only prepares the next boot reverts first, too.
  Plan before_boot = plan_of(all_resources());
  before_boot.awaits_reboot = true;
  preview_run(host, Mode::kFresh, before_boot);
  ASSERT_FALSE(before_boot.notes.empty());
  EXPECT_THAT(before_boot.notes.front().problem.what, HasSubstr("are reverted first"));

  FakeHost whole = bare_machine();
  ASSERT_TRUE(set_up(whole).complete());
  Plan more = plan_of(all_resources());
  preview_run(whole, Mode::kAdd, more);
  EXPECT_THAT(more.notes, IsEmpty());
}

TEST(PreviewOfARun, RevertsAreListedAsChanges) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  Plan same = plan_of(all_resources());
  EXPECT_THAT(preview_run(host, Mode::kFresh, same), IsEmpty());
  EXPECT_THAT(same.notes, IsEmpty());
  Resources fewer = all_resources();
  std::erase_if(fewer, [](const Resource& resource) { return key_of(resource).ends_with(kNicB); });
  Plan plan = plan_of(fewer);
  const auto changes = host.changes;
  const auto previews = preview_run(host, Mode::kFresh, plan);
  ASSERT_THAT(previews, SizeIs(2));
  EXPECT_EQ(previews[0].what, "reverted: 0000:5e:00.0: for group ztcp");
  EXPECT_EQ(previews[1].what, "reverted: 0000:5e:00.0: virtio-pci -> vfio-pci");
  EXPECT_EQ(host.changes, changes);
}

TEST(PreviewOfARun, AnInterruptedRunIsReported) {
  FakeHost host = bare_machine();
  host.kill_at(40, FakeHost::When::kBefore);
  EXPECT_THROW(set_up(host), Killed);
  host.kill_at(0, FakeHost::When::kBefore);
  Plan plan = plan_of(all_resources());
  preview_run(host, Mode::kFresh, plan);
  ASSERT_THAT(plan.notes, SizeIs(1));
  EXPECT_THAT(plan.notes[0].problem.what, HasSubstr("was interrupted"));
}

// Faults found after set-up has reverted an interrupted run: that was a change.
TEST(PreviewOfARun, APlanWithFaultsReportsThePrecedingReverts) {
  FakeHost host = bare_machine();
  host.kill_at(60, FakeHost::When::kBefore);
  EXPECT_THROW(set_up(host), Killed);
  host.kill_at(0, FakeHost::When::kBefore);
  host.stuck_settings = {"ring rx"};
  auto journal = Journal::open(host);
  const Outcome back = revert_half_done(host, *journal, {});
  ASSERT_TRUE(back.complete()) << all_of(back.faults);
  Plan plan = plan_of(all_resources());
  plan.pairs.emplace_back();
  plan.topology.nics.emplace_back();
  plan.fabric->nics.emplace_back();
  note_reverted(plan, back);
  const std::string text = faults_text(plan, back.changed());
  EXPECT_THAT(text, HasSubstr("its changes were reverted, except for its hugepages"));
  EXPECT_THAT(text, HasSubstr("ens1f0: ring rx was 4096 and is 256 now"));
  EXPECT_THAT(text, HasSubstr("the changes of the previous run were reverted, nothing else was "
                              "changed\n"));
  EXPECT_THAT(to_json(plan, {}, "set-up"), HasSubstr("its changes were reverted"));

  Plan fresh = plan_of(all_resources());
  fresh.pairs = plan.pairs;
  fresh.topology = plan.topology;
  fresh.fabric->nics.emplace_back();
  note_reverted(fresh, {});
  EXPECT_THAT(fresh.notes, IsEmpty());
  EXPECT_THAT(faults_text(fresh, false), HasSubstr("setup failed; nothing was changed\n"));
}

}  // namespace
}  // namespace ztcp::setup
