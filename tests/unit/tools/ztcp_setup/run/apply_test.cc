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
using test::kConfig;
using test::kNicA;
using test::kNicB;
using test::kPages0;
using test::nic_resources;
using test::set_up;
using test::undo;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(Apply, TakesTheMachineAndUndoGivesItBack) {
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

TEST(Apply, DoesNothingTwice) {
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

TEST(Apply, GoesOnWhenNobodyListensAnyMore) {
  Resources resources = all_resources();
  for (Resource& resource : resources)
    resource.why += std::string(1000, '.');  // More than stdio holds back.
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

TEST(Apply, FewerPagesThanWantedIsAFaultWithBothNumbersAndTheRestGoesOn) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  const FakeHost::State bare = host.state;
  const Outcome outcome = set_up(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("gave 12 of 20"));
  EXPECT_THAT(host.log, Contains("write /proc/sys/vm/compact_memory 1"));
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Apply, PagesThatCameWithTheNextBootAreOursToo) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  EXPECT_FALSE(set_up(host).complete());
  host.state.values[kPages0] = "20";  // From the kernel's command line.
  EXPECT_TRUE(set_up(host).complete());
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Apply, PagesThatCameWithTheNextBootGoWithUndo) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  EXPECT_FALSE(set_up(host).complete());
  host.boot();
  EXPECT_EQ(host.state.values.at(kPages0), "20");
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Apply, MorePagesThanWantedAreLeftAlone) {
  FakeHost host = bare_machine();
  host.state.values[kPages0] = "64";
  ASSERT_TRUE(set_up(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "64");
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "64");
}

TEST(Apply, UndoTakesOnlyItsOwnPages) {
  FakeHost host = bare_machine();
  host.state.values[kPages0] = "4";
  ASSERT_TRUE(set_up(host).complete());
  host.state.values[kPages0] = "30";  // Somebody wanted 10 more.
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "14");
}

TEST(Apply, FewerPagesWantedLaterAreAllGivenBack) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  Resources fewer = all_resources();
  for (Resource& resource : fewer)
    if (auto* value = std::get_if<resource::Value>(&resource.what)) value->value = "8";
  ASSERT_TRUE(set_up(host, fewer).complete());
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Apply, AKernelInstalledSinceKeepsWhatStoodThereWithoutUs) {
  FakeHost host = bare_machine();
  host.state.boot = {{"/boot/vmlinuz-1", "ro iommu=pt"}};
  host.state.boot_of_new_kernels = "ro iommu=pt";
  ASSERT_TRUE(set_up(host).complete());
  EXPECT_EQ(host.state.boot_of_new_kernels, "ro iommu=pt hugepages=20");
  host.state.boot["/boot/vmlinuz-2"] = host.state.boot_of_new_kernels;
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-1"), "ro iommu=pt");
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-2"), "ro iommu=pt");
  EXPECT_EQ(host.state.boot_of_new_kernels, "ro iommu=pt");
}

TEST(Apply, AnEditedFileIsKept) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.add_file(kConfig, "schema = 1\n# mine\n");
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("edited"));
  EXPECT_EQ(host.facts(kConfig).kind, FileKind::kAbsent);
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");

  ASSERT_TRUE(set_up(host).complete());
  host.add_file(kConfig, "schema = 1\n# mine, later\n");
  EXPECT_TRUE(undo(host).complete());
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");
  ASSERT_TRUE(host.read_file(std::string(kConfig) + ".edited-2"));
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited-2"), "schema = 1\n# mine, later\n");
}

// Its values are those of the new text; what people wrote beside them would be lost.
TEST(Apply, AnEditedFileIsKeptWhenAnotherIsWritten) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  Resources resources = all_resources();
  for (Resource& resource : resources)
    if (key_of(resource) == std::string("file ") + kConfig)
      std::get<resource::File>(resource.what).text += "name = \"blue\"\n";
  FakeHost same = host;
  EXPECT_THAT(all_of(set_up(same, resources).notes), IsEmpty()) << "nobody edited it";

  host.add_file(kConfig, "schema = 1\n# mine\n");
  Plan plan;
  plan.fabric.emplace();
  plan.resources = resources;
  const auto changes = host.changes;
  preview_run(host, Mode::kFresh, plan);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_THAT(plan.notes.front().problem.what, HasSubstr("ztcp.conf.edited"));
  EXPECT_EQ(host.changes, changes);

  const Outcome outcome = set_up(host, resources);
  EXPECT_TRUE(outcome.complete()) << all_of(outcome.faults);
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("ztcp.conf.edited"));
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");
  EXPECT_THAT(*host.read_file(kConfig), HasSubstr("blue"));
}

TEST(Apply, WhatIsPutInAFilesPlaceStays) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.state.nodes.at(kConfig) = {FileKind::kLink, {0777, 0, 0}, "/srv/ztcp.conf"};
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("is no file any more, and stays"));
  EXPECT_EQ(host.facts(kConfig).kind, FileKind::kLink);
}

TEST(Apply, AMountInThePlaceOfOursStays) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  ASSERT_EQ(host.state.mounts.size(), 1U);
  auto& [folder, mounted] = *host.state.mounts.begin();
  mounted = "hugetlbfs pagesize=1024M";
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete()) << all_of(outcome.faults);
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("which is not set-up's; it stays"));
  EXPECT_EQ(host.state.mounts.size(), 1U);
}

TEST(Apply, AFolderWithSomethingElseInItStaysAndIsTold) {
  FakeHost host = bare_machine();
  const Resources resources{{"locks", resource::Folder{"/run/ztcp", 02770, "", "ztcp"}}};
  host.add_folder("/run");
  ASSERT_TRUE(set_up(host, resources).complete());
  host.add_file("/run/ztcp/notes", "");
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("/run/ztcp: holds notes, and stays"));
}

TEST(Apply, WhatIsNoLongerWantedIsGivenBack) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  Resources fewer = all_resources();
  std::erase_if(fewer, [](const Resource& resource) { return key_of(resource).ends_with(kNicB); });
  ASSERT_TRUE(set_up(host, fewer).complete());
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "vfio-pci");
  EXPECT_EQ(host.state.links.at("ens2f0"), bare.links.at("ens2f0"));
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Apply, MoreIsAppliedBesideWhatThereIs) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  Resources first = all_resources();
  std::erase_if(first, [](const Resource& resource) { return key_of(resource).ends_with(kNicB); });
  ASSERT_TRUE(set_up(host, first).complete());
  Resources more = nic_resources(kNicB);
  more.push_back({"config", resource::File{kConfig, "schema = 1\n# two NICs\n", 0644, ""}});
  const auto changes = host.log.size();
  ASSERT_TRUE(set_up(host, more, Scope::kMore).complete());
  for (std::size_t i = changes; i < host.log.size(); ++i)
    EXPECT_THAT(host.log[i], Not(HasSubstr(kNicA)));
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
  EXPECT_EQ(*host.read_file(kConfig), "schema = 1\n# two NICs\n");
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Apply, LocksThatJobsLeftGoWithTheirFolder) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  host.add_file("/usr/local/tfabric/tools/run/0000:3b:00.0.lock", "", {0666, 1000, 990});
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

}  // namespace
}  // namespace ztcp::setup
