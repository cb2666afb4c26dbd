// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/live_machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/readings.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LiveMachine, ATreesOwnerCountsAsRoot) {
  test::Tree tree;
  tree.add_file("etc/a.conf", "one\ntwo\n");
  ::chmod(tree.path("etc/a.conf").c_str(), 0640);
  tree.add_link("etc/b.conf", "a.conf");
  tree.add_link("etc/lost", "nowhere");
  LiveMachine machine(tree.root());
  EXPECT_EQ(machine.facts("/etc").kind, FileKind::kFolder);
  EXPECT_EQ(machine.facts("/etc/b.conf").kind, FileKind::kLink);
  const FileFacts behind = machine.facts_behind("/etc/b.conf");
  EXPECT_EQ(behind.kind, FileKind::kFile);
  EXPECT_EQ(behind.ownership, (Ownership{0640, 0, 0}));
  EXPECT_EQ(behind.size_bytes, 8U);
  EXPECT_EQ(machine.facts_behind("/etc/lost").kind, FileKind::kAbsent);
  EXPECT_EQ(machine.link_target("/etc/b.conf"), "a.conf");
  EXPECT_EQ(machine.read_value("/etc/b.conf"), "one\ntwo\n");
  EXPECT_EQ(machine.read_value("/etc").error().sys_errno, EISDIR);
  EXPECT_EQ(machine.read_value("/nowhere").error().sys_errno, ENOENT);
  EXPECT_THAT(machine.list("/etc"), ElementsAre("a.conf", "b.conf", "lost"));
  EXPECT_THAT(machine.list("/nowhere"), IsEmpty());
  EXPECT_TRUE(machine.may_access("/etc/a.conf", R_OK));
  EXPECT_FALSE(machine.may_access("/nowhere", F_OK));
}

TEST(LiveMachine, APipeDoesNotBlock) {
  test::Tree tree;
  ASSERT_EQ(::mkfifo(tree.path("pipe").c_str(), 0600), 0);
  LiveMachine machine(tree.root());
  EXPECT_EQ(machine.read_value("/pipe"), "");
}

// NCCL_CONF_FILE may name any file.
TEST(LiveMachine, EndlessDevicesAreReadInPart) {
  test::Tree tree;
  tree.add_link("endless", "/dev/zero");
  tree.add_file("long", std::string(5U << 20, 'x'));
  LiveMachine machine(tree.root());
  EXPECT_LE(machine.read_value("/endless").value_or("").size(), 2U << 20);
  EXPECT_EQ(machine.read_value("/long").value_or("").size(), 5U << 20);
}

TEST(Readings, ReadsLinesNumbersAndLinks) {
  test::Tree tree("pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=-1 driver=ena");
  tree.add_file("a", "  text \nmore\n");
  LiveMachine machine(tree.root());
  EXPECT_EQ(read_line(machine, "/a"), "text");
  EXPECT_EQ(read_number(machine, pci_folder("0000:00:05.0") + "/numa_node"), -1);
  EXPECT_EQ(read_number(machine, "/a"), std::nullopt);
  EXPECT_EQ(link_name(machine, pci_folder("0000:00:05.0") + "/driver"), "ena");
  EXPECT_EQ(iommu_group(machine, "0000:00:05.0"), "");
}

}  // namespace
}  // namespace ztcp::config
