// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Hugepages and locked memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/checked_machine.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// 12288 frames of 9001 bytes with overhead, and DPDK's own memory: 143 MiB, in whole pages.
TEST(CheckMemory, TooFewHugepagesOnTheNodeAreAFault) {
  CheckedMachine machine;
  machine.tree.add("pages node=0 kib=2048 total=4096 free=50");
  const Problem problem = machine.fault("hugepages");
  EXPECT_EQ(problem.where, "NUMA node 0");
  EXPECT_THAT(problem.what,
              HasSubstr("needs 72 x 2 MiB hugepages on NUMA node 0, has 50 free of 4096"));
  EXPECT_THAT(problem.mend, HasSubstr("echo 4118 > "));
}

TEST(CheckMemory, TooFewHugepagesForAllProcessesAreAWarning) {
  CheckedMachine machine;
  machine.fabric.hugepages.spare_mib = 1024;
  machine.tree.add("pages node=0 kib=2048 total=3071 free=1000");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].problem.what,
              HasSubstr("set-up reserves 6144 MiB for all processes, which needs 3072 x 2 MiB "
                        "hugepages on NUMA node 0, has 3071"));
  EXPECT_THAT(warnings[0].problem.mend, HasSubstr("echo 3072 > "));
}

TEST(CheckMemory, AMissingNodeIsAWarning) {
  CheckedMachine machine;
  machine.nic().numa_node = 3;
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].name, "numa");
  EXPECT_THAT(warnings[0].problem.what,
              HasSubstr("numa_node = 3 in the config, which this machine does not have"));
}

TEST(CheckMemory, AProcessNeedsPagesOfItsOwnNicsOnly) {
  CheckedMachine machine;
  add_second_nic(machine);
  const auto faults_of = [&](const NicList& own) {
    return check_host(machine.fabric, machine.live, machine.gpus, own);
  };
  EXPECT_THAT(faults_of({0}), IsEmpty());
  ASSERT_THAT(faults_of({1}), SizeIs(1));
  EXPECT_THAT(faults_of({1})[0].what, HasSubstr("needs 72 x 2 MiB hugepages on NUMA node 1"));
  ASSERT_THAT(faults_of({0, 1}), SizeIs(1));
  // --check covers the processes of all NICs, each separately.
  EXPECT_THAT(machine.fault("hugepages").what, HasSubstr("on NUMA node 1, has 0 free of 4096"));
  machine.tree.add("pages node=1 kib=2048 total=4096 free=72");
  machine.tree.add("pages node=0 kib=2048 total=4096 free=72");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckMemory, AContainersLimitIsComparedWithOneProcess) {
  CheckedMachine machine;
  add_second_nic(machine);
  machine.tree.add("pages node=1 kib=2048 total=4096 free=4096");
  machine.tree.add_file("sys/fs/cgroup/user.slice/hugetlb.2MB.max", "167772160\n");  // 160 MiB.
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckMemory, APageLimitBelowTheNeedIsAFault) {
  CheckedMachine machine;
  machine.fabric.hugepages.per_process_mib = 100;
  const Problem problem = machine.fault("hugepages");
  EXPECT_THAT(problem.what,
              HasSubstr("hugepages.per_process_mib = 100 lets a process take 100 MiB, "
                        "which needs 143 MiB for its 1 NIC"));
  EXPECT_THAT(problem.mend, HasSubstr("per_process_mib = 144 or more"));
}

TEST(CheckMemory, HugepagesOfAnotherSizeDoNotCount) {
  CheckedMachine machine;
  machine.fabric.hugepages.page_kib = 1048576;
  EXPECT_THAT(machine.fault("hugepages").what,
              HasSubstr("needs 1 x 1 GiB hugepages on NUMA node 0, but the kernel has none"));
}

// DPDK gets its memory node by node, and NICs without a known node count on node 0.
TEST(CheckMemory, ANicWithoutANodeTakesPagesOfTheFirstNode) {
  CheckedMachine machine;
  machine.nic().numa_node = -1;
  machine.tree.add(
      "pages node=0 kib=2048 total=100 free=40\npages node=1 kib=2048 total=400 free=400");
  EXPECT_THAT(machine.fault("hugepages").what, HasSubstr("has 40 free of 100"));
  machine.tree.add("pages node=0 kib=2048 total=100 free=80");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckMemory, ATooSmallCgroupLimitIsAFault) {
  CheckedMachine machine;
  machine.tree.add_file("sys/fs/cgroup/user.slice/hugetlb.2MB.max", "67108864\n");
  EXPECT_THAT(machine.fault("cgroup").what,
              HasSubstr("needs 72 x 2 MiB hugepages, the container's cgroup leaves 32"));
}

TEST(CheckMemory, ASufficientCgroupLimitIsGood) {
  CheckedMachine machine;
  machine.tree.add_file("sys/fs/cgroup/user.slice/hugetlb.2MB.max", "8589934592\n");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

void limit_locked_memory(CheckedMachine& machine, std::uint64_t bytes) {
  machine.tree.add_file("proc/self/limits",
                        fmt::format("Max locked memory {0} {0} bytes\n", bytes));
}

TEST(CheckMemory, TooLittleLockedMemoryIsAFault) {
  CheckedMachine machine;
  limit_locked_memory(machine, 8 << 20);
  const Problem problem = machine.fault("memlock");
  EXPECT_THAT(problem.what, HasSubstr("8192 KiB, wanted unlimited, or more than the 5242880 KiB"));
  EXPECT_THAT(problem.mend, HasSubstr("ulimit -l unlimited"));
  // A limit of just the pages leaves nothing for the buffers.
  limit_locked_memory(machine, std::uint64_t{5120} << 20);
  EXPECT_THAT(machine.fault("memlock").what, HasSubstr("5242880 KiB, wanted"));
  limit_locked_memory(machine, (std::uint64_t{5120} << 20) + 1);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckMemory, LockedMemoryIsUnlimitedWithTheCapability) {
  CheckedMachine machine;
  limit_locked_memory(machine, 8 << 20);
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000004000\n");  // CAP_IPC_LOCK
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckMemory, LockedMemoryCountsOnlyWithAnIommu) {
  CheckedMachine machine;
  limit_locked_memory(machine, 8 << 20);
  machine.fabric.host.host_class = HostClass::kNoIommu;
  machine.tree.remove("dev/vfio/7");
  machine.tree.add_file("dev/vfio/noiommu-7", "");
  // CAP_SYS_ADMIN and CAP_SYS_RAWIO.
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000220000\n");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

}  // namespace
}  // namespace ztcp::config
