// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up and undo on a machine in memory.
#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::all_resources;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kNicA;
using test::kPages0;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::SizeIs;

TEST(Apply, AppliesAllAndUndoRestoresAll) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  const Outcome done = set_up(host);
  ASSERT_TRUE(done.complete()) << all_of(done.faults);
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "vfio-pci");
  EXPECT_EQ(host.state.nics.at(kNicA).driver_override, "vfio-pci");
  EXPECT_EQ(host.state.nodes.at("/dev/vfio/12").ownership, (Ownership{0660, 0, 990}));
  EXPECT_EQ(host.state.values.at(kPages0), "20");
  EXPECT_EQ(host.state.values.at("grub.cfg"), "iommu=pt hugepages=20\n");
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-1"), "ro quiet iommu=pt hugepages=20");
  EXPECT_TRUE(host.state.enabled.contains("ztcp-setup.service"));
  EXPECT_EQ(host.state.nodes.at("/usr/local/tfabric/tools/run").ownership.mode, 01777U);
  EXPECT_EQ(host.state.nodes.at(Journal::kFolder).ownership, (Ownership{0700, 0, 0}));
  EXPECT_EQ(host.state.nodes.at(Journal::kPath).ownership, (Ownership{0600, 0, 0}));

  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(Apply, TheJournalKeepsTheOrderSoThatUndoGoesBackwards) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  std::vector<std::string> wanted;
  for (const Resource& resource : all_resources()) wanted.push_back(key_of(resource));
  std::vector<std::string> recorded;
  const auto journal = Journal::open(host);
  ASSERT_TRUE(journal);
  for (const Entry& entry : journal->entries()) recorded.push_back(key_of(entry.resource));
  EXPECT_EQ(recorded, wanted);
}

TEST(Apply, ASecondRunChangesNothing) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const FakeHost::State first = host.state;
  const auto changes = host.changes;
  const Outcome again = set_up(host);
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  EXPECT_FALSE(again.changed());
  EXPECT_EQ(host.changes, changes);
  expect_same(host.state, first);
  ASSERT_TRUE(undo(host).complete());
  const auto undone = host.changes;
  EXPECT_FALSE(undo(host).changed());
  EXPECT_EQ(host.changes, undone);
}

TEST(Apply, StopsBetweenStepsWhenAsked) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  int steps = 0;
  Progress progress;
  progress.stop = [&] { return ++steps > 5; };
  const Outcome stopped = set_up(host, all_resources(), Scope::kWhole, progress);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_THAT(stopped.steps, SizeIs(5));
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Apply, GoesOnWithoutAReaderOfItsOutput) {
  Resources resources = all_resources();
  for (Resource& resource : resources)
    resource.why += std::string(1000, '.');  // More than stdio's buffer.
  EXPECT_EXIT(
      {
        if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(2);
        FakeHost host = bare_machine();
        const Outcome outcome = set_up(host, resources, Scope::kWhole, progress_of(false));
        std::_Exit(outcome.complete() && Journal::open(host)->complete ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Apply, ChecksEverythingBeforeItChangesAnything) {
  FakeHost host = bare_machine();
  Resources resources = all_resources();
  resources.push_back({"no such NIC", resource::Driver{"0000:ff:00.0", "vfio-pci"}});
  resources.push_back({"no such group", resource::Folder{"/etc/x", 0755, "", "nobody-has-it"}});
  const Outcome outcome = set_up(host, resources);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("0000:ff:00.0: there is no such PCI device"));
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("there is no group nobody-has-it"));
  EXPECT_EQ(host.changes, 0U);
}

}  // namespace
}  // namespace ztcp::setup
