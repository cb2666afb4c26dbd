// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t k1Gib = 1048576;
constexpr std::uint32_t k2Mib = 2048;
constexpr const char* kDebian =
    "file path=etc/os-release text=ID=ubuntu\\nID_LIKE=debian\n"
    "file path=usr/sbin/update-grub text=\n"
    "file path=proc/sys/kernel/osrelease text=6.1.0-26-amd64\n";
constexpr const char* kRocky =
    "file path=etc/os-release text=ID=\"rocky\"\\nID_LIKE=\"rhel centos fedora\"\n"
    "file path=usr/sbin/grubby text=\n"
    "file path=proc/sys/kernel/osrelease text=5.14.0-427.el9.x86_64\n";

std::string command_line(const std::string& text) {
  return "file path=proc/cmdline text=BOOT_IMAGE=/vmlinuz ro " + text + "\n";
}

BootPlan plan(FakeHost host, const std::vector<std::string>& others = {}) {
  return plan_boot(host, {{0, 25, 0}, {1, 25, 0}}, k1Gib, others);
}

TEST(BootLine, PagesPerNodeNeedAKernelThatSupportsThem) {
  const std::vector<NodePages> nodes{{0, 25, 0}, {1, 24, 0}};
  EXPECT_THAT(page_arguments(nodes, k1Gib, "5.16.0"),
              ElementsAre("hugepagesz=1G", "hugepages=0:25,1:24"));
  EXPECT_THAT(page_arguments(nodes, k2Mib, "5.15.9-generic"),
              ElementsAre("hugepagesz=2M", "hugepages=49"));
  EXPECT_THAT(page_arguments({{-1, 7, 0}}, k2Mib, "6.1.0"),
              ElementsAre("hugepagesz=2M", "hugepages=7"));
  EXPECT_THAT(page_arguments({}, k2Mib, "6.1.0"), IsEmpty());
}

TEST(BootLine, CountsThePagesOfACommandLine) {
  EXPECT_EQ(pages_on({"quiet"}, k2Mib), 0U);
  EXPECT_EQ(pages_on({"hugepages=64"}, k2Mib), 64U);
  EXPECT_EQ(pages_on({"hugepages=64"}, k1Gib), 0U);
  EXPECT_EQ(pages_on({"default_hugepagesz=1G", "hugepages=4"}, k1Gib), 4U);
  EXPECT_EQ(pages_on({"hugepagesz=1G", "hugepages=0:2,1:3", "hugepagesz=2M", "hugepages=9"}, k1Gib),
            5U);
  EXPECT_EQ(pages_on({"hugepagesz=2048K", "hugepages=9", "hugepages=8"}, k2Mib), 9U)
      << "the first count holds";
}

TEST(BootLine, DebianGetsADropIn) {
  const BootPlan found = plan(FakeHost(kDebian + command_line("quiet")), {"iommu=pt"});
  EXPECT_THAT(found.notes, IsEmpty());
  ASSERT_THAT(found.resources, SizeIs(3));
  const auto& file = std::get<resource::File>(found.resources[0].what);
  EXPECT_EQ(file.path, "/etc/default/grub.d/ztcp.cfg");
  EXPECT_THAT(file.text,
              HasSubstr("\nGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt "
                        "hugepagesz=1G hugepages=0:25,1:25\"\n"));
  EXPECT_THAT(std::get<resource::Notice>(found.resources[1].what).argv, ElementsAre("update-grub"));
  EXPECT_THAT(std::get<resource::Notice>(found.resources[2].what).argv,
              ElementsAre("sync", "--file-system", "/boot"));
}

// After a boot the line contains our own arguments; they are still wanted.
TEST(BootLine, TheDropInIsTheSameAfterItsBoot) {
  const auto first = std::get<resource::File>(
      plan(FakeHost(kDebian + command_line("quiet")), {"iommu=pt"}).resources[0].what);
  FakeHost booted(kDebian + command_line("quiet iommu=pt hugepagesz=1G hugepages=0:25,1:25"));
  booted.add_file(first.path, first.text);
  const BootPlan second = plan(booted, {"iommu=pt"});
  ASSERT_THAT(second.resources, SizeIs(3));
  EXPECT_EQ(std::get<resource::File>(second.resources[0].what).text, first.text);
}

// The kernel still runs with the arguments that an undo removed from the menu since.
TEST(BootLine, TheMenuCountsInsteadOfTheRunningKernel) {
  const std::string menu =
      "file path=boot/grub/grub.cfg text=menuentry 'Debian' {\\n linux /vmlinuz ro quiet";
  const std::string ours = " iommu=pt hugepagesz=1G hugepages=0:25,1:25";
  const BootPlan undone =
      plan(FakeHost(kDebian + command_line("quiet" + ours) + menu + "\n"), {"iommu=pt"});
  ASSERT_THAT(undone.resources, SizeIs(3));
  EXPECT_THAT(std::get<resource::File>(undone.resources[0].what).text, HasSubstr(ours));
  EXPECT_THAT(
      plan(FakeHost(kDebian + command_line("quiet") + menu + ours + "\n"), {"iommu=pt"}).resources,
      IsEmpty());
}

TEST(BootLine, TheOperatorsArgumentsAreNotAddedAgain) {
  EXPECT_THAT(
      plan(FakeHost(kDebian + command_line("iommu=pt hugepagesz=1G hugepages=60")), {"iommu=pt"})
          .resources,
      IsEmpty());
}

TEST(BootLine, ASmallerCountOfTheOperatorsIsAWarning) {
  const BootPlan found =
      plan(FakeHost(kDebian + command_line("hugepagesz=1G hugepages=4")), {"iommu=pt"});
  ASSERT_THAT(found.notes, SizeIs(1));
  EXPECT_THAT(found.notes[0].problem.what, HasSubstr("reserves 4 pages of 1048576 KiB"));
  EXPECT_THAT(found.notes[0].problem.mend, HasSubstr("hugepages=0:25,1:25"));
  const auto& file = std::get<resource::File>(found.resources[0].what);
  EXPECT_THAT(file.text, Not(HasSubstr("hugepages=")));
  EXPECT_THAT(file.text, HasSubstr("iommu=pt"));
}

TEST(BootLine, GrubbyGetsArguments) {
  const BootPlan found = plan(FakeHost(kRocky + command_line("quiet")), {"iommu=pt"});
  ASSERT_THAT(found.resources, SizeIs(1));
  EXPECT_THAT(std::get<resource::BootArguments>(found.resources[0].what).arguments,
              ElementsAre("iommu=pt", "hugepagesz=1G", "hugepages=50"));
  // The same after their boot: else they would be reverted.
  const BootPlan again =
      plan(FakeHost(kRocky + command_line("iommu=pt hugepagesz=1G hugepages=50")), {"iommu=pt"});
  ASSERT_THAT(again.resources, SizeIs(1));
  EXPECT_EQ(std::get<resource::BootArguments>(again.resources[0].what).arguments,
            std::get<resource::BootArguments>(found.resources[0].what).arguments);
}

constexpr const char* kProxmox =
    "file path=etc/kernel/cmdline text=root=ZFS=rpool boot=zfs\n"
    "file path=etc/kernel/proxmox-boot-uuids text=AAAA-BBBB\n"
    "file path=usr/sbin/proxmox-boot-tool text=\n"
    "file path=boot/grub/grub.cfg text=menuentry x {\\n linux /vmlinuz ro iommu=pt hugepagesz=1G "
    "hugepages=0:25,1:25\\n}\n"
    "file path=sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f "
    "text=s y s t e m d - b o o t\n"
    "file path=proc/stat text=btime 1000\n";

// Independent of GRUB's menu, from which the machine does not boot.
TEST(BootLine, SystemdBootGetsArgumentsInItsOwnFile) {
  FakeHost host(std::string(kDebian) + kProxmox + command_line("quiet"));
  const BootPlan found = plan(host, {"iommu=pt"});
  EXPECT_THAT(found.notes, IsEmpty());
  ASSERT_THAT(found.resources, SizeIs(2));
  const auto& file = std::get<resource::CommandLineFile>(found.resources[0].what);
  EXPECT_EQ(file.path, "/etc/kernel/cmdline");
  EXPECT_THAT(file.arguments, ElementsAre("iommu=pt", "hugepagesz=1G", "hugepages=0:25,1:25"));
  EXPECT_THAT(std::get<resource::Notice>(found.resources[1].what).argv,
              ElementsAre("proxmox-boot-tool", "refresh"));
}

// Otherwise the operator would be told to reboot for ever.
TEST(BootLine, ABootWithoutTheWrittenArgumentsIsAFault) {
  for (const std::string& loader : {std::string(kDebian), std::string(kDebian) + kProxmox}) {
    FakeHost host(loader + command_line("quiet") + "file path=proc/stat text=btime 1000\n");
    const auto first = plan(host, {"iommu=pt"});
    EXPECT_THAT(first.notes, IsEmpty());
    std::string path = "/etc/kernel/cmdline";
    std::string text = "root=ZFS=rpool iommu=pt hugepagesz=1G hugepages=0:25,1:25\n";
    if (const auto* drop_in = std::get_if<resource::File>(&first.resources[0].what)) {
      path = drop_in->path;
      text = drop_in->text;
    }
    host.add_file(path, text);
    host.modified[path] = 1001;
    EXPECT_THAT(plan(host, {"iommu=pt"}).notes, IsEmpty()) << "not booted since";
    host.modified[path] = 999;
    const auto notes = plan(host, {"iommu=pt"}).notes;
    ASSERT_THAT(notes, SizeIs(1)) << path;
    EXPECT_EQ(notes[0].severity, config::Severity::kFault);
    EXPECT_THAT(notes[0].problem.what,
                HasSubstr("iommu=pt hugepagesz=1G hugepages=0:25,1:25 was in " + path +
                          " before this boot"));
    EXPECT_EQ(plan(host).notes.at(0).severity, config::Severity::kWarning) << "of pages alone";
  }
}

TEST(BootLine, PagesOfOtherProgramsComeBeforeOurs) {
  FakeHost host(kRocky + command_line("intel_iommu=on hugepages=512"));
  const auto resources = plan(host).resources;
  ASSERT_THAT(resources, SizeIs(1));
  host.state.boot = {{"/boot/vmlinuz-1", "ro hugepages=512"},
                     {"/boot/vmlinuz-2", "ro hugepagesz=2M hugepages=64"}};
  const auto bare = host.state.boot;
  const auto& arguments = std::get<resource::BootArguments>(resources[0].what);
  auto before = arguments.before(host);
  ASSERT_TRUE(before);
  ASSERT_TRUE(arguments.apply(host, *before));
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-1"), "ro hugepages=512 hugepagesz=1G hugepages=50");
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-2"),
            "ro hugepagesz=2M hugepages=64 hugepagesz=1G hugepages=50");
  EXPECT_TRUE(arguments.holds(host));
  EXPECT_TRUE(arguments.revert(host, *before).faults.empty());
  EXPECT_EQ(host.state.boot, bare);
  // As an earlier release wrote it: 50 pages of 2 MiB.
  host.state.boot = {{"/boot/vmlinuz-1", "ro hugepages=50 hugepagesz=1G"}};
  EXPECT_FALSE(arguments.holds(host));
  FakeHost booted(kRocky + command_line("hugepages=50 hugepagesz=1G"));
  EXPECT_THAT(plan(booted).resources, SizeIs(1));
}

TEST(BootLine, AnUnknownBootLoaderIsLeftToTheOperator) {
  const BootPlan found = plan(FakeHost(command_line("quiet")));
  EXPECT_THAT(found.resources, IsEmpty());
  ASSERT_THAT(found.notes, SizeIs(1));
  EXPECT_THAT(found.notes[0].problem.mend, HasSubstr("by hand"));
  EXPECT_THAT(found.notes[0].problem.mend, HasSubstr("hugepagesz=1G hugepages=50"));
}

}  // namespace
}  // namespace ztcp::setup
