// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/cgroup.h"

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

TEST(CpuQuota, Version2UsesTheTightestAncestor) {
  test::Tree tree;
  LiveMachine machine(tree.root());
  tree.add_file("proc/self/cgroup", "0::/kubepods/pod7/box\n");
  EXPECT_EQ(cpu_quota(machine), 0U);
  tree.add_file("sys/fs/cgroup/kubepods/pod7/box/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(machine), 0U);
  tree.add_file("sys/fs/cgroup/kubepods/cpu.max", "1600000 100000\n");
  EXPECT_EQ(cpu_quota(machine), 16U);
  tree.add_file("sys/fs/cgroup/kubepods/pod7/cpu.max", "250000 100000\n");
  EXPECT_EQ(cpu_quota(machine), 2U);
  // In a cgroup namespace the process is in the root, and the root's file is the container's.
  tree.add_file("proc/self/cgroup", "0::/\n");
  tree.add_file("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(machine), 1U) << "less than a CPU is one";
}

TEST(CpuQuota, Version1HasItsOwnFiles) {
  test::Tree tree;
  LiveMachine machine(tree.root());
  tree.add_file("proc/self/cgroup", "7:hugetlb:/a\n4:cpu,cpuacct:/docker/1f2e\n0::/\n");
  tree.add_file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  tree.add_file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(machine), 0U);
  tree.add_file("sys/fs/cgroup/cpu/docker/1f2e/cpu.cfs_quota_us", "400000\n");
  tree.add_file("sys/fs/cgroup/cpu/docker/1f2e/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(machine), 4U);
}

}  // namespace
}  // namespace ztcp::config
