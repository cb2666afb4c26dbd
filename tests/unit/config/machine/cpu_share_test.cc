// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/cpu_share.h"

#include <cstdlib>
#include <sched.h>
#include <thread>

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using Cpus = std::vector<std::uint32_t>;

class CpuShareOf : public testing::Test {
 protected:
  CpuShareOf() {
    for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                             "SLURM_STEP_TASKS_PER_NODE"})
      unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
    tree_.add_file("proc/self/status", "Name:\tjob\nCpus_allowed_list:\t0-3,8\n");
    tree_.add_file("sys/devices/system/cpu/online", "0-11\n");
  }
  CpuShare read() {
    LiveMachine machine(tree_.root());
    return read_cpu_share(machine);
  }
  test::Tree tree_;
};

TEST_F(CpuShareOf, APlainHostGivesItsMaskAndOnlineCpus) {
  const CpuShare share = read();
  EXPECT_EQ(share.allowed, (Cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(share.common, 12U);
  EXPECT_EQ(share.quota, 0U);
  EXPECT_TRUE(share.nodes.empty());
  EXPECT_EQ(share.ranks.count, 1U);
  EXPECT_EQ(share.ranks.source, "");
}

// Ranks of a container share its CPUs.
TEST_F(CpuShareOf, RanksShareTheCpusetOfTheirCgroups) {
  tree_.add_file("proc/self/cgroup", "0::/pods/7\n");
  tree_.add_file("sys/fs/cgroup/pods/cpuset.cpus.effective", "0-9\n");
  EXPECT_EQ(read().common, 10U);
  tree_.add_file("sys/fs/cgroup/pods/7/cpuset.cpus.effective", "0-3,8-9\n");
  EXPECT_EQ(read().common, 6U);
  tree_.add_file("sys/fs/cgroup/pods/7/cpuset.cpus.effective", "\n");
  EXPECT_EQ(read().common, 10U) << "one that holds none says nothing";
}

TEST_F(CpuShareOf, RanksShareACpusetOfVersion1) {
  tree_.add_file("proc/self/cgroup", "3:cpuset:/docker/1f2e\n");
  tree_.add_file("sys/fs/cgroup/cpuset/docker/1f2e/cpuset.effective_cpus", "0-6\n");
  EXPECT_EQ(read().common, 7U);
}

TEST_F(CpuShareOf, CommonCpusAreAtLeastTheMasks) {
  tree_.add_file("sys/devices/system/cpu/online", "0-1\n");
  EXPECT_EQ(read().common, 5U);
}

TEST_F(CpuShareOf, QuotaAndNodesAreRead) {
  tree_.add_file("proc/self/cgroup", "0::/\n");
  tree_.add_file("sys/fs/cgroup/cpu.max", "50000 100000\n");
  tree_.add_file("sys/devices/system/node/node0/cpulist", "0-3\n");
  tree_.add_file("sys/devices/system/node/node1/cpulist", "4-7,9\n");
  tree_.add_file("sys/devices/system/node/possible", "0-1\n");
  const CpuShare share = read();
  EXPECT_EQ(share.quota, 1U) << "half a CPU is one";
  ASSERT_EQ(share.nodes.size(), 2U);
  EXPECT_EQ(share.nodes.at(1), (Cpus{4, 5, 6, 7, 9}));
}

TEST_F(CpuShareOf, RanksComeFromTheLauncherElseOnePerGpu) {
  tree_.add_file("proc/driver/nvidia/gpus/0000:17:00.0/information", "\n");
  tree_.add_file("proc/driver/nvidia/gpus/0000:65:00.0/information", "\n");
  EXPECT_EQ(read().ranks.count, 2U);
  EXPECT_EQ(read().ranks.source, "2 GPUs");
  setenv("SLURM_STEP_TASKS_PER_NODE", "8(x2)", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(read().ranks.count, 8U);
  EXPECT_EQ(read().ranks.source, "SLURM_STEP_TASKS_PER_NODE");
  setenv("LOCAL_WORLD_SIZE", "0", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(read().ranks.count, 8U) << "none is no number of ranks";
  setenv("LOCAL_WORLD_SIZE", "4", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(read().ranks.count, 4U);
  unsetenv("LOCAL_WORLD_SIZE");           // NOLINT(concurrency-mt-unsafe)
  unsetenv("SLURM_STEP_TASKS_PER_NODE");  // NOLINT(concurrency-mt-unsafe)
}

TEST_F(CpuShareOf, AnUnreadableMachineGivesAnEmptyShare) {
  test::Tree bare;
  LiveMachine machine(bare.root());
  const CpuShare share = read_cpu_share(machine);
  EXPECT_TRUE(share.allowed.empty());
  EXPECT_EQ(share.common, 0U);
  EXPECT_EQ(share.quota, 0U);
}

// --- This process --------------------------------------------------------------------------------

Cpus mask_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  Cpus out;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  return out;
}

void pin_this_thread(const Cpus& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
  EXPECT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

// NCCL pins its service threads, OpenMP the main thread.
TEST(AllowedCpus, APinnedThreadDoesNotNarrowTheProcess) {
  LiveMachine machine;
  const Cpus all = mask_of_this_thread();
  std::thread([&] {
    pin_this_thread({all.back()});
    EXPECT_EQ(machine.allowed_cpus(), all);
    EXPECT_EQ(mask_of_this_thread(), Cpus{all.back()}) << "not ours to move";
  }).join();
}

TEST(AllowedCpus, ARestrictedProcessStaysRestricted) {
  LiveMachine machine;
  const Cpus all = mask_of_this_thread();
  pin_this_thread({all.back()});
  std::thread([&] { EXPECT_EQ(machine.allowed_cpus(), Cpus{all.back()}); }).join();
  pin_this_thread(all);
}

}  // namespace
}  // namespace ztcp::config
