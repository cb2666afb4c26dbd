// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/mounts.h"

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

std::vector<Mount> mounts(const std::string& text) {
  test::Tree tree;
  tree.add_file("proc/self/mountinfo", text);
  LiveMachine machine(tree.root());
  return mounts_of(machine);
}

TEST(Mounts, AreListedInOrder) {
  const auto found = mounts(
      "22 1 259:1 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw,errors=remount-ro\n"
      "40 22 0:35 / /dev/hugepages1G rw,nosuid - hugetlbfs none rw,pagesize=1024M\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].folder, "/");
  EXPECT_EQ(found[0].type, "ext4");
  EXPECT_EQ(found[0].source, "/dev/root");
  EXPECT_EQ(found[0].options, "rw,errors=remount-ro");
  EXPECT_EQ(found[1].folder, "/dev/hugepages1G");
  EXPECT_EQ(found[1].option("pagesize"), "1024M");
  EXPECT_EQ(found[1].option("page"), "");
  EXPECT_TRUE(found[1].has("pagesize=1G"));
  EXPECT_TRUE(found[1].has("rw"));
  EXPECT_FALSE(found[1].has("pagesize=2M"));
  EXPECT_FALSE(found[1].has("pagesize=M"));
  EXPECT_EQ(found[1].option("rw"), "");
}

TEST(Mounts, EscapedBlanksAreDecoded) {
  const auto found = mounts("50 22 0:50 / /mnt/a\\040b\\134c rw - nfs4 10.0.0.9:/my\\040home rw\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].folder, "/mnt/a b\\c");
  EXPECT_EQ(found[0].source, "10.0.0.9:/my home");
}

TEST(Mounts, MalformedLinesAreSkipped) {
  EXPECT_TRUE(mounts("").empty());
  EXPECT_TRUE(mounts("22 1 259:1 / /\n22 1 259:1 / / rw ext4 /dev/root rw\n- - -\n").empty());
  EXPECT_EQ(mounts("1 1 0:1 / /a rw - tmpfs \n1 1 0:1 / /b rw - tmpfs none\n").size(), 1U);
}

}  // namespace
}  // namespace ztcp::config
