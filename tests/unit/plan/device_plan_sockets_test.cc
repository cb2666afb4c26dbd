// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Plans of kernel socket interfaces.
#include <string>

#include <gtest/gtest.h>

#include "tests/support/cpu_share.h"
#include "transport/plan/device_plan.h"

namespace ztcp::plan {
namespace {

using config::LocalRanks;
using test::cpus;

DeviceFacts interface(std::size_t nccl_devices, std::size_t count = 1,
                      std::uint32_t speed_mbps = 0) {
  DeviceFacts facts;
  facts.is_kernels = true;
  facts.count = count;
  facts.speed_mbps = speed_mbps;
  facts.nccl_devices = nccl_devices;
  return facts;
}

struct Case {
  const char* name;
  config::CpuShare share;
  std::size_t lanes;
  const char* reason;
  DeviceFacts facts = interface(8);
  std::size_t helpers = 0;
  std::uint32_t flows = 1;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class SocketsPlan : public testing::TestWithParam<Case> {};

TEST_P(SocketsPlan, FitsTheCpus) {
  const DevicePlan plan = plan_device(GetParam().facts, GetParam().share, {});
  EXPECT_EQ(plan.lanes.size(), GetParam().lanes);
  EXPECT_EQ(plan.helpers, GetParam().helpers);
  EXPECT_EQ(plan.flows, GetParam().flows);
  EXPECT_EQ(plan.lanes_reason, GetParam().reason);
  EXPECT_EQ(plan.nccl_devices, GetParam().facts.nccl_devices) << "for any CPUs";
}

const LocalRanks kTwo{2, "2 GPUs"};
const LocalRanks kEight{8, "LOCAL_WORLD_SIZE"};
constexpr const char* kOneOfMany = "1 CPU for each of 64 ranks (LOCAL_WORLD_SIZE)";

INSTANTIATE_TEST_SUITE_P(
    Machines, SocketsPlan,
    testing::Values(
        Case{"one_cpu", cpus(1, 1), 1, "1 CPU"}, Case{"two_cpus", cpus(2, 2), 1, "2 CPUs"},
        Case{"three_cpus", cpus(3, 3), 1, "3 CPUs"},
        Case{"two_ranks_of_a_small_machine", cpus(8, 8, 0, kTwo), 2,
             "4 CPUs for each of 2 ranks (2 GPUs)"},
        Case{"two_ranks_of_a_large_one", cpus(32, 32, 0, kTwo), 12,
             "16 CPUs for each of 2 ranks (2 GPUs)"},
        Case{"just_enough_for_twelve", cpus(14, 14), 12, "14 CPUs"},
        Case{"one_less", cpus(13, 13), 8, "13 CPUs"},
        Case{"just_enough_for_six", cpus(8, 8), 6, "8 CPUs"},
        Case{"too_few_for_them", cpus(7, 7), 4, "7 CPUs"},
        // A mask of 15 could be each rank's own; one of 16 has room for no fewer lanes.
        Case{"mask_of_its_own", cpus(15, 124, 0, kEight), 12, "15 CPUs"},
        Case{"mask_a_little_larger", cpus(16, 124, 0, kEight), 12,
             "15 CPUs for each of 8 ranks (LOCAL_WORLD_SIZE)"},
        Case{"mask_of_a_socket", cpus(64, 128, 0, kEight), 12,
             "16 CPUs for each of 8 ranks (LOCAL_WORLD_SIZE)"},
        Case{"whole_machine", cpus(124, 124, 0, kEight), 12,
             "15 CPUs for each of 8 ranks (LOCAL_WORLD_SIZE)"},
        // The ranks of a container share its cpuset, however many CPUs the host has.
        Case{"container_of_32", cpus(32, 32, 0, kEight), 2,
             "4 CPUs for each of 8 ranks (LOCAL_WORLD_SIZE)"},
        Case{"quota", cpus(64, 64, 4), 2, "4 CPUs"},
        Case{"quota_of_all_ranks", cpus(64, 64, 32, kEight), 2,
             "4 CPUs for each of 8 ranks (LOCAL_WORLD_SIZE)"},
        Case{"quota_below_one", cpus(64, 64, 1, kEight), 1,
             "1 CPU for each of 8 ranks (LOCAL_WORLD_SIZE)"},
        Case{"more_ranks_than_cpus", cpus(2, 2, 0, {64, "LOCAL_WORLD_SIZE"}), 1, kOneOfMany},
        Case{"two_interfaces", cpus(32, 32), 12, "32 CPUs", interface(4, 2)},
        Case{"two_interfaces_of_fewer_cpus", cpus(16, 16), 6, "16 CPUs", interface(4, 2)},
        Case{"three_interfaces", cpus(64, 64), 2, "64 CPUs", interface(1, 3), 8, 5},
        Case{"slow", cpus(16, 16), 1, "16 CPUs, 10 Gb/s", interface(8, 1, 10'000)},
        Case{"faster", cpus(16, 16), 8, "16 CPUs, 100 Gb/s", interface(8, 1, 100'000)},
        Case{"fast", cpus(16, 16), 12, "16 CPUs", interface(8, 1, 200'000)},
        Case{"one_device_two_cpus", cpus(2, 2), 1, "2 CPUs", interface(1)},
        Case{"one_device_four_cpus", cpus(4, 4), 1, "4 CPUs", interface(1), 1, 3},
        Case{"one_device", cpus(16, 16), 2, "16 CPUs", interface(1), 8, 5},
        Case{"one_device_25G", cpus(64, 64), 1, "64 CPUs, 25 Gb/s", interface(1, 1, 25'000), 2, 4}),
    [](const auto& row) { return row.param.name; });

TEST(ConfiguredHelpers, ApplyWithMoreThanOneCpu) {
  config::Poller settings;
  settings.workers = 12;
  DevicePlan plan = plan_device(interface(8), cpus(4, 4), settings);
  EXPECT_EQ(plan.helpers, 12U);
  EXPECT_EQ(plan.lanes.size(), 3U);
  EXPECT_EQ(plan.lanes_reason, "as poller.workers says");
  EXPECT_EQ(plan.nccl_devices, 8U) << "hosts may differ in [poller]";
  plan = plan_device(interface(8), cpus(1, 4), settings);
  EXPECT_EQ(plan.helpers, 0U);
  EXPECT_EQ(plan.lanes_reason, "poller.workers is 12, but the process may use one CPU");
  settings.workers = 0;
  EXPECT_EQ(plan_device(interface(8), cpus(64, 64), settings).helpers, 0U);
  DeviceFacts facts = interface(8);
  facts.told_flows = 2;
  EXPECT_EQ(plan_device(facts, cpus(64, 64), settings).flows, 2U);
}

TEST(Lanes, ShareTheHelpers) {
  config::Poller settings;
  settings.workers = 11;
  const DevicePlan plan = plan_device(interface(1), cpus(16, 16), settings);
  ASSERT_EQ(plan.lanes.size(), 2U);
  EXPECT_EQ(plan.lanes[0].helpers, 6U);
  EXPECT_EQ(plan.lanes[1].helpers, 5U);
}

TEST(Lanes, TakeOverWhereThereAreCpusForTheirThreads) {
  EXPECT_FALSE(plan_device(interface(8), cpus(2, 2), {}).takes_over);
  EXPECT_TRUE(plan_device(interface(8), cpus(3, 3), {}).takes_over);
  config::Poller settings;
  settings.workers = 0;
  EXPECT_FALSE(plan_device(interface(8), cpus(16, 16), settings).takes_over);
  settings.workers = 8;
  settings.mode = config::PollerMode::kDedicated;
  const DevicePlan plan = plan_device(interface(8), cpus(16, 16), settings);
  EXPECT_FALSE(plan.takes_over);
  EXPECT_TRUE(plan.is_dedicated);
  EXPECT_EQ(plan.lanes.size(), 1U);
}

TEST(Lanes, YieldAtOnceWhereRanksOutnumberCpus) {
  EXPECT_EQ(plan_device(interface(8), cpus(2, 2, 0, {4, "test"}), {}).spin, Duration::zero());
  EXPECT_EQ(plan_device(interface(8), cpus(4, 4, 0, {4, "test"}), {}).spin,
            std::chrono::microseconds(50));
}

TEST(SocketsText, SaysWhichThreadsPollAndHowManyLanesThereAre) {
  EXPECT_EQ(sockets_text(plan_device(interface(8), cpus(2, 2), {})),
            "in NCCL's threads; no workers (2 CPUs), 1 flow");
  EXPECT_EQ(sockets_text(plan_device(interface(8), cpus(16, 16), {})),
            "in NCCL's threads, bulk in its own; 12 lanes (16 CPUs), 1 flow");
  EXPECT_EQ(sockets_text(plan_device(interface(1), cpus(16, 16), {})),
            "in NCCL's threads, bulk in its own; 2 lanes with 8 workers (16 CPUs), 5 flows");
  config::Poller settings;
  settings.mode = config::PollerMode::kDedicated;
  EXPECT_EQ(sockets_text(plan_device(interface(1), cpus(4, 4), settings)),
            "a thread of its own; 1 worker (4 CPUs), 3 flows");
}

}  // namespace
}  // namespace ztcp::plan
