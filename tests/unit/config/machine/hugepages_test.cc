// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/hugepages.h"

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

class Pages : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    tree_.add_file(path, text + "\n");
  }
  void write_pages(const std::string& folder, int total, int free) {
    write(folder + "/nr_hugepages", std::to_string(total));
    write(folder + "/free_hugepages", std::to_string(free));
  }

  test::Tree tree_;
  LiveMachine machine_{tree_.root()};
};

TEST_F(Pages, KnowsTheMachinesNodes) {
  EXPECT_TRUE(has_numa_node(machine_, 0)) << "a kernel without nodes";
  EXPECT_FALSE(has_numa_node(machine_, 1));
  write("sys/devices/system/node/node1/cpulist", "0-3");
  EXPECT_TRUE(has_numa_node(machine_, 1));
  EXPECT_FALSE(has_numa_node(machine_, 0));
  EXPECT_FALSE(has_numa_node(machine_, 10));
}

TEST_F(Pages, CountsEachSizeOnEachNode) {
  const std::string nodes = "sys/devices/system/node/";
  write_pages(nodes + "node1/hugepages/hugepages-2048kB", 512, 7);
  write_pages(nodes + "node0/hugepages/hugepages-1048576kB", 25, 25);
  write_pages(nodes + "node0/hugepages/hugepages-2048kB", 0, 0);
  write(nodes + "possible", "0-1");
  // The machine's own counts are the sum of the nodes' and must not be added.
  write_pages("sys/kernel/mm/hugepages/hugepages-2048kB", 512, 7);
  const auto pages = read_pages(machine_);
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(pages[0].node, 0);
  EXPECT_EQ(pages[0].page_kib, 2048U);
  EXPECT_EQ(pages[0].total, 0U);
  EXPECT_EQ(pages[1].page_kib, 1048576U);
  EXPECT_EQ(pages[1].free, 25U);
  EXPECT_EQ(pages[2].node, 1);
  EXPECT_EQ(pages[2].total, 512U);
  EXPECT_EQ(pages[2].free, 7U);
  EXPECT_EQ(pages[2].path, "/" + nodes + "node1/hugepages/hugepages-2048kB");
}

TEST_F(Pages, ReadsAMachineWithoutNodes) {
  write_pages("sys/kernel/mm/hugepages/hugepages-2048kB", 64, 32);
  const auto pages = read_pages(machine_);
  ASSERT_EQ(pages.size(), 1U);
  EXPECT_EQ(pages[0].node, -1);
  EXPECT_EQ(pages[0].free, 32U);
}

TEST_F(Pages, SkipsMalformedCounts) {
  EXPECT_TRUE(read_pages(machine_).empty());
  write_pages("sys/kernel/mm/hugepages/hugepages-2048kB", 64, 32);
  write("sys/kernel/mm/hugepages/hugepages-16384kB/nr_hugepages", "many");
  write("sys/kernel/mm/hugepages/hugepages-xkB/nr_hugepages", "1");
  EXPECT_EQ(read_pages(machine_).size(), 1U);
}

TEST_F(Pages, CgroupVersion2UsesTheTightestAncestor) {
  write("proc/self/cgroup", "0::/kubepods/pod7/box");
  const std::string top = "sys/fs/cgroup/";
  write(top + "kubepods/pod7/box/hugetlb.2MB.max", "max");
  write(top + "kubepods/pod7/hugetlb.2MB.max", std::to_string(100 << 20));
  write(top + "kubepods/pod7/hugetlb.2MB.current", std::to_string(30 << 20));
  write(top + "kubepods/hugetlb.2MB.max", std::to_string(500 << 20));
  write(top + "kubepods/hugetlb.1GB.rsvd.max", std::to_string(3ULL << 30));
  EXPECT_EQ(cgroup_allowance_bytes(machine_, 2048), std::uint64_t{70} << 20);
  EXPECT_EQ(cgroup_allowance_bytes(machine_, 1048576), std::uint64_t{3} << 30);
}

TEST_F(Pages, CgroupVersion1HasItsOwnFiles) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/a\n7:hugetlb:/a/b\n0::/");
  write("sys/fs/cgroup/hugetlb/a/b/hugetlb.2MB.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(cgroup_allowance_bytes(machine_, 2048), std::nullopt);
  write("sys/fs/cgroup/hugetlb/a/hugetlb.2MB.limit_in_bytes", "4194304");
  write("sys/fs/cgroup/hugetlb/a/hugetlb.2MB.usage_in_bytes", "6291456");
  EXPECT_EQ(cgroup_allowance_bytes(machine_, 2048), 0U) << "more used than allowed leaves nothing";
}

TEST_F(Pages, WithoutAControllerThereIsNoLimit) {
  EXPECT_EQ(cgroup_allowance_bytes(machine_, 2048), std::nullopt);
  write("proc/self/cgroup", "0::/../..");
  EXPECT_EQ(cgroup_allowance_bytes(machine_, 2048), std::nullopt);
}

TEST_F(Pages, ReadsThisMachine) {
  LiveMachine machine;
  for (const hugepage::NodePages& pages : read_pages(machine)) {
    EXPECT_GT(pages.page_kib, 0U);
    EXPECT_LE(pages.free, pages.total);
  }
}

}  // namespace
}  // namespace ztcp::config
