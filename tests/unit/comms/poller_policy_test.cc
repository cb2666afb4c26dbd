// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/poller_policy.h"

#include <filesystem>
#include <fstream>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/cpu_view.h"

namespace ztcp::comms {
namespace {

using test::cpus;
using namespace std::chrono_literals;

struct Case {
  const char* name;
  CpuView view;
  PollerPlace place;
  bool dedicated;
  Duration spin;
};

class AutoPolicy : public testing::TestWithParam<Case> {};

TEST_P(AutoPolicy, FitsTheMachine) {
  const PollerPolicy policy = choose_policy({}, GetParam().view, GetParam().place);
  EXPECT_EQ(policy.dedicated, GetParam().dedicated);
  EXPECT_EQ(policy.spin, GetParam().spin);
}

CpuView with_quota(CpuView view, std::size_t quota) {
  view.quota = quota;
  return view;
}

INSTANTIATE_TEST_SUITE_P(
    Machines, AutoPolicy,
    testing::Values(
        Case{"two_cpus_two_ranks", cpus(2, 2), {.nics = 2, .embedded = true}, false, 50us},
        Case{"two_cpus_four_ranks", cpus(2, 2), {.nics = 4, .embedded = true}, false, 0us},
        Case{"big_server", cpus(96, 96), {.nics = 8}, true, 50us},
        Case{"mask_of_one_rank", cpus(12, 96), {.nics = 8}, true, 50us},
        Case{"narrow_mask_of_one_rank", cpus(2, 96), {.nics = 8}, false, 50us},
        // A container on two CPUs of a large host runs all ranks of an embedded fabric there.
        Case{"embedded_in_narrow_mask", cpus(2, 96), {.nics = 4, .embedded = true}, false, 0us},
        // A poller for each queue, and two threads beside them in each process.
        Case{"queues_with_cpus_to_spare",
             cpus(20, 20),
             {.nics = 2, .queues = 8, .embedded = true},
             true,
             50us},
        Case{"queues_without",
             cpus(19, 19),
             {.nics = 2, .queues = 8, .embedded = true},
             false,
             50us},
        Case{"queues_in_a_mask_of_one_rank", cpus(5, 96), {.nics = 8, .queues = 4}, false, 50us},
        Case{"more_queues_than_cpus", cpus(4, 96), {.nics = 8, .queues = 5}, false, 0us},
        Case{"quota_counts_not_cpus", with_quota(cpus(64, 64), 2), {.nics = 4}, false, 0us}),
    [](const auto& row) { return row.param.name; });

TEST(ViewCpus, ReadsTheLimitOfACgroupAboveAndTheNodeOfTheNic) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("ztcp-cpus-" + std::to_string(getpid()));
  const auto write = [&](const char* path, const char* text) {
    std::filesystem::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << text;
  };
  write("proc/self/cgroup", "0::/jobs/7\n");
  write("sys/fs/cgroup/jobs/cpu.max", "200000 100000\n");
  write("sys/devices/system/node/node1/cpulist", "4-5,9\n");
  config::LiveMachine machine(folder);
  const CpuView view = view_cpus(1, machine);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(view.quota, 2U);
  EXPECT_EQ(view.near_nic, (std::vector<std::uint32_t>{4, 5, 9}));
}

TEST(ChoosePolicy, PinsNearTheNicInsideTheMask) {
  CpuView view = cpus(96, 96);
  view.near_nic = {40, 41, 42, 200};
  EXPECT_EQ(choose_policy({}, view, {.nic = 0, .nics = 8}).cpu, 42);
  EXPECT_EQ(choose_policy({}, view, {.nic = 1, .nics = 8}).cpu, 41);
}

TEST(ChoosePolicy, SaysWhy) {
  const PollerPlace place{.nics = 2, .queues = 4};
  EXPECT_EQ(choose_policy({}, cpus(16, 16), place).reason, "16 CPUs, 12 wanted");
  EXPECT_EQ(choose_policy({}, cpus(8, 8), place).reason, "8 CPUs, 12 wanted");
  config::Poller settings;
  settings.mode = config::PollerMode::kDedicated;
  EXPECT_EQ(choose_policy(settings, cpus(2, 2), place).reason, "as poller.mode says");
}

TEST(ChoosePolicy, EveryQueueHasACpuOfItsOwn) {
  CpuView view = cpus(96, 96);
  view.near_nic = {40, 41, 42, 43};
  EXPECT_EQ(choose_policy({}, view, {.nic = 1, .nics = 2, .queue = 0, .queues = 2}).cpu, 41);
  EXPECT_EQ(choose_policy({}, view, {.nic = 1, .nics = 2, .queue = 1, .queues = 2}).cpu, 40);
}

TEST(ChoosePolicy, NamedCpusWin) {
  config::Poller settings;
  settings.mode = config::PollerMode::kDedicated;
  settings.cpus = {7, 9};
  CpuView view = cpus(16, 16);
  view.near_nic = {1, 2};
  EXPECT_EQ(choose_policy(settings, view, {.nic = 1, .nics = 2}).cpu, 9);
}

TEST(ChoosePolicy, SharedIsNeverPinned) {
  config::Poller settings;
  settings.mode = config::PollerMode::kShared;
  settings.cpus = {3};
  EXPECT_EQ(choose_policy(settings, cpus(16, 16), {}).cpu, -1);
}

struct WorkersCase {
  const char* name;
  std::int32_t setting;
  CpuView view;
  PollerPlace place;
  std::size_t workers;
  const char* why;
};
void PrintTo(const WorkersCase& c, std::ostream* out) { *out << c.name; }

class WorkerPolicy : public testing::TestWithParam<WorkersCase> {};

TEST_P(WorkerPolicy, TakesNoPollersCpu) {
  config::Poller settings;
  settings.workers = GetParam().setting;
  const PollerPolicy policy = choose_policy(settings, GetParam().view, GetParam().place);
  EXPECT_EQ(policy.workers, GetParam().workers);
  EXPECT_EQ(policy.workers_reason, GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, WorkerPolicy,
    testing::Values(
        WorkersCase{"auto_big", -1, cpus(96, 96), {.nics = 8}, 4, "72 CPUs to spare for 8 NICs"},
        WorkersCase{"auto_some", -1, cpus(8, 8), {.nics = 2}, 1, "2 CPUs to spare for 2 NICs"},
        WorkersCase{"auto_too_few", -1, cpus(7, 7), {.nics = 2}, 0, "1 CPUs to spare for 2 NICs"},
        WorkersCase{"auto_shared", -1, cpus(2, 2), {.nics = 2}, 0, "0 CPUs to spare for 2 NICs"},
        WorkersCase{"auto_own_mask", -1, cpus(5, 96), {.nics = 8}, 2, "2 CPUs to spare for 1 NIC"},
        WorkersCase{"auto_queues",
                    -1,
                    cpus(32, 32),
                    {.nics = 2, .queue = 0, .queues = 3, .embedded = true},
                    0,
                    "its 3 queues share the work"},
        WorkersCase{"told_first_queue",
                    4,
                    cpus(32, 32),
                    {.nics = 2, .queue = 0, .queues = 3, .embedded = true},
                    2,
                    "as poller.workers says"},
        WorkersCase{"told_last_queue",
                    4,
                    cpus(32, 32),
                    {.nics = 2, .queue = 2, .queues = 3, .embedded = true},
                    1,
                    "as poller.workers says"},
        WorkersCase{"none", 0, cpus(96, 96), {.nics = 8}, 0, "as poller.workers says"},
        WorkersCase{"as_told", 6, cpus(96, 96), {.nics = 8}, 6, "as poller.workers says"},
        WorkersCase{"more_than_cpus",
                    9,
                    cpus(8, 8),
                    {.nics = 2},
                    3,
                    "poller.workers is 9, but 8 CPUs for 2 pollers"},
        WorkersCase{"cpuset_of_one",
                    4,
                    cpus(1, 64),
                    {.nics = 8},
                    0,
                    "poller.workers is 4, but 1 CPU for 1 poller"},
        WorkersCase{"quota",
                    -1,
                    with_quota(cpus(64, 64), 8),
                    {.nics = 2},
                    1,
                    "2 CPUs to spare for 2 NICs"}),
    [](const auto& row) { return row.param.name; });

TEST(WorkerPolicy, TheirCpusAreNoPollers) {
  CpuView view = cpus(96, 96);
  view.near_nic = {38, 39, 40, 41, 42, 43, 200};
  EXPECT_EQ(choose_policy({}, view, {.nics = 2}).worker_cpus,
            (std::vector<std::uint32_t>{38, 39, 40, 41}));
  view.near_nic = {39, 40, 41, 42, 43};
  ASSERT_EQ(choose_policy({}, view, {.nics = 2}).workers, 4U);
  EXPECT_EQ(choose_policy({}, view, {.nics = 2}).worker_cpus.size(), 94U) << "three are too few";
  view.near_nic = {40, 41};
  EXPECT_EQ(choose_policy({}, view, {.nics = 2}).worker_cpus.size(), 94U) << "far away, then";
}

// Each queue has a part of them.
TEST(WorkersText, TellsOfAllQueues) {
  config::Poller settings;
  settings.workers = 5;
  EXPECT_EQ(workers_text(settings, cpus(96, 96), {.nics = 2, .queues = 3}),
            "5 workers (as poller.workers says)");
  settings.workers = 1;
  EXPECT_EQ(workers_text(settings, cpus(96, 96), {.nics = 2, .queues = 3}),
            "1 worker (as poller.workers says)");
  settings.workers = 0;
  EXPECT_EQ(workers_text(settings, cpus(96, 96), {}), "no workers (as poller.workers says)");
}

std::vector<std::uint32_t> mask_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<std::uint32_t> out;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  return out;
}

void pin_this_thread(const std::vector<std::uint32_t>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
  EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

// NCCL pins its service threads, OpenMP the main one.
TEST(ViewCpus, AThreadsPinIsNotTheProcesss) {
  config::LiveMachine machine;
  const std::vector<std::uint32_t> all = mask_of_this_thread();
  std::thread([&] {
    pin_this_thread({all.back()});
    EXPECT_EQ(view_cpus(-1, machine).allowed, all);
    EXPECT_EQ(mask_of_this_thread(), std::vector{all.back()}) << "not ours to move";
  }).join();
}

TEST(ViewCpus, ARestrictedProcessStaysSo) {
  config::LiveMachine machine;
  const std::vector<std::uint32_t> all = mask_of_this_thread();
  pin_this_thread({all.back()});
  std::thread([&] { EXPECT_EQ(view_cpus(-1, machine).allowed, std::vector{all.back()}); }).join();
  pin_this_thread(all);
}

}  // namespace
}  // namespace ztcp::comms
