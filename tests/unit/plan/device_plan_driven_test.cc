// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Plans of NICs that the plugin drives itself.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cpu_share.h"
#include "transport/plan/device_plan.h"

namespace ztcp::plan {
namespace {

using test::cpus;
using namespace std::chrono_literals;

DeviceFacts pci(std::size_t nics, std::uint32_t lanes = 1, std::size_t index = 0) {
  DeviceFacts facts;
  facts.is_on_pci = true;
  facts.count = nics;
  facts.index = index;
  facts.told_lanes = lanes;
  return facts;
}

DeviceFacts embedded(std::size_t nics, std::uint32_t lanes = 1) {
  DeviceFacts facts = pci(nics, lanes);
  facts.is_on_pci = false;
  facts.is_embedded = true;
  return facts;
}

DeviceFacts on_auto(std::size_t nics, std::uint32_t speed_mbps = 100'000,
                    std::uint16_t mtu_bytes = 1500) {
  config::Fabric fabric;
  config::Nic nic;
  nic.driver = config::NicDriver::kPci;
  nic.queues = config::kAutoQueues;
  nic.speed_mbps = speed_mbps;
  nic.mtu_bytes = mtu_bytes;
  fabric.nics.assign(nics, nic);
  return facts_of(fabric, 0);
}

// CPUs of node 1.
config::CpuShare with_node(config::CpuShare share, std::vector<std::uint32_t> near_nic) {
  share.nodes[1] = std::move(near_nic);
  return share;
}

DeviceFacts on_node_1(DeviceFacts facts) {
  facts.numa_node = 1;
  return facts;
}

struct ModeCase {
  const char* name;
  config::CpuShare share;
  DeviceFacts facts;
  bool is_dedicated;
  Duration spin;
};

class AutoMode : public testing::TestWithParam<ModeCase> {};

TEST_P(AutoMode, FitsTheMachine) {
  const DevicePlan plan = plan_device(GetParam().facts, GetParam().share, {});
  EXPECT_EQ(plan.is_dedicated, GetParam().is_dedicated);
  EXPECT_EQ(plan.spin, GetParam().spin);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, AutoMode,
    testing::Values(
        ModeCase{"two_cpus_two_ranks", cpus(2, 2), embedded(2), false, 50us},
        ModeCase{"two_cpus_four_ranks", cpus(2, 2), embedded(4), false, 0us},
        ModeCase{"big_server", cpus(96, 96), pci(8), true, 50us},
        ModeCase{"mask_of_one_rank", cpus(12, 96), pci(8), true, 50us},
        ModeCase{"narrow_mask_of_one_rank", cpus(2, 96), pci(8), false, 50us},
        // A container on two CPUs of a large host runs all ranks of an embedded fabric there.
        ModeCase{"embedded_in_narrow_mask", cpus(2, 96), embedded(4), false, 0us},
        // A lane's thread for each queue, and two threads beside them in each process.
        ModeCase{"queues_with_cpus_to_spare", cpus(20, 20), embedded(2, 8), true, 50us},
        ModeCase{"queues_without", cpus(19, 19), embedded(2, 8), false, 50us},
        ModeCase{"queues_in_a_mask_of_one_rank", cpus(5, 96), pci(8, 4), false, 50us},
        ModeCase{"more_queues_than_cpus", cpus(4, 96), pci(8, 5), false, 0us},
        ModeCase{"quota_counts_not_cpus", cpus(64, 64, 2), pci(4), false, 0us},
        // One process that drives all NICs has its CPUs for all of them.
        ModeCase{"one_rank_eight_nics", cpus(10, 96, 0, {1, "test"}), pci(8), true, 50us},
        ModeCase{"one_rank_too_few", cpus(9, 96, 0, {1, "test"}), pci(8), false, 50us}),
    [](const auto& row) { return row.param.name; });

TEST(DrivenNic, ModeReasonNamesCpusAndThreads) {
  EXPECT_EQ(plan_device(pci(2, 4), cpus(16, 16), {}).mode_reason,
            "8 CPUs for each of 2 NICs, 6 wanted");
  EXPECT_EQ(plan_device(pci(1), cpus(2, 2), {}).mode_reason, "2 CPUs, 3 wanted");
  config::Poller settings;
  settings.mode = config::PollerMode::kDedicated;
  EXPECT_EQ(plan_device(pci(2, 4), cpus(2, 2), settings).mode_reason, "as poller.mode says");
}

TEST(DrivenNic, LanesArePinnedNearTheNicInsideTheMask) {
  const config::CpuShare share = with_node(cpus(96, 96), {40, 41, 42, 43, 200});
  const auto cpu_of = [&](std::size_t index, std::size_t lane) {
    return plan_device(on_node_1(pci(2, 2, index)), share, {}).lanes.at(lane).cpu;
  };
  EXPECT_EQ(cpu_of(0, 0), 43);
  EXPECT_EQ(cpu_of(0, 1), 42);
  EXPECT_EQ(cpu_of(1, 0), 41);
  EXPECT_EQ(cpu_of(1, 1), 40);
  EXPECT_EQ(plan_device(pci(2), share, {}).lanes[0].cpu, -1) << "its node is unknown";
}

TEST(DrivenNic, CpusOfTheConfigArePreferred) {
  config::Poller settings;
  settings.mode = config::PollerMode::kDedicated;
  settings.cpus = {7, 9, 200};
  const config::CpuShare share = with_node(cpus(16, 16), {1, 2});
  EXPECT_EQ(plan_device(on_node_1(pci(2, 1, 1)), share, settings).lanes[0].cpu, 9);
  settings.mode = config::PollerMode::kShared;
  EXPECT_EQ(plan_device(on_node_1(pci(2, 1, 1)), share, settings).lanes[0].cpu, -1);
}

struct HelpersCase {
  const char* name;
  std::int32_t setting;
  config::CpuShare share;
  DeviceFacts facts;
  std::size_t helpers;
  const char* why;
};
void PrintTo(const HelpersCase& c, std::ostream* out) { *out << c.name; }

class Helpers : public testing::TestWithParam<HelpersCase> {};

TEST_P(Helpers, TakeNoLanesCpu) {
  config::Poller settings;
  settings.workers = GetParam().setting;
  const DevicePlan plan = plan_device(GetParam().facts, GetParam().share, settings);
  EXPECT_EQ(plan.helpers, GetParam().helpers);
  EXPECT_EQ(plan.helpers_reason, GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, Helpers,
    testing::Values(
        HelpersCase{"auto_big", -1, cpus(96, 96), pci(8), 4, "9 CPUs to spare for this NIC"},
        HelpersCase{"auto_some", -1, cpus(8, 8), pci(2), 1, "1 CPU to spare for this NIC"},
        HelpersCase{"auto_too_few", -1, cpus(7, 7), pci(2), 0, "0 CPUs to spare for this NIC"},
        HelpersCase{"auto_own_mask", -1, cpus(5, 96), pci(8), 2, "2 CPUs to spare for this NIC"},
        HelpersCase{"auto_queues", -1, cpus(32, 32), embedded(2, 3), 0,
                    "its 3 lanes share the work"},
        HelpersCase{"none", 0, cpus(96, 96), pci(8), 0, "as poller.workers says"},
        HelpersCase{"as_told", 6, cpus(96, 96), pci(8), 6, "as poller.workers says"},
        HelpersCase{"more_than_cpus", 9, cpus(8, 8), pci(2), 3,
                    "poller.workers is 9, but of 4 CPUs for each of 2 NICs, 3 are left beside 1 "
                    "poller"},
        HelpersCase{"cpuset_of_one", 4, cpus(1, 64), pci(8), 0,
                    "poller.workers is 4, but of 1 CPU, 0 are left beside 1 poller"},
        HelpersCase{"quota", -1, cpus(64, 64, 8), pci(2), 1, "1 CPU to spare for this NIC"}),
    [](const auto& row) { return row.param.name; });

TEST(Helpers, AreDividedAmongLanes) {
  config::Poller settings;
  settings.workers = 4;
  const DevicePlan plan = plan_device(embedded(2, 3), cpus(32, 32), settings);
  ASSERT_EQ(plan.lanes.size(), 3U);
  EXPECT_EQ(plan.lanes[0].helpers, 2U);
  EXPECT_EQ(plan.lanes[2].helpers, 1U);
}

TEST(Helpers, RunOnCpusOfNoLane) {
  const auto on = [](std::vector<std::uint32_t> near_nic) {
    return plan_device(on_node_1(pci(2)), with_node(cpus(96, 96), std::move(near_nic)), {});
  };
  EXPECT_EQ(on({38, 39, 40, 41, 42, 43, 200}).helper_cpus,
            (std::vector<std::uint32_t>{38, 39, 40, 41}));
  ASSERT_EQ(on({39, 40, 41, 42, 43}).helpers, 4U);
  EXPECT_EQ(on({39, 40, 41, 42, 43}).helper_cpus.size(), 94U) << "three are too few";
  EXPECT_EQ(on({40, 41}).helper_cpus.size(), 94U) << "far away, then";
}

TEST(DrivenNic, AutoLanesFollowSpeedAndCpus) {
  const auto lanes = [](const DeviceFacts& facts, const config::CpuShare& share) {
    return plan_device(facts, share, {}).lanes.size();
  };
  EXPECT_EQ(lanes(on_auto(1), cpus(64, 64)), 4U);
  EXPECT_EQ(lanes(on_auto(1, 25'000), cpus(64, 64)), 1U) << "one core keeps up";
  EXPECT_EQ(lanes(on_auto(1, 50'000), cpus(64, 64)), 2U);
  EXPECT_EQ(lanes(on_auto(1, 100'000, 9000), cpus(64, 64)), 2U) << "large frames are fewer";
  EXPECT_EQ(lanes(on_auto(1, 400'000, 9000), cpus(64, 64)), 4U) << "no more are chosen";
  EXPECT_EQ(lanes(on_auto(1, 0), cpus(64, 64)), 2U) << "unknown speed";
  EXPECT_EQ(lanes(on_auto(8), cpus(32, 32)), 2U) << "eight NICs share the CPUs";
  EXPECT_EQ(lanes(on_auto(8), cpus(12, 96)), 4U) << "a mask of this process alone";
  EXPECT_EQ(lanes(on_auto(8), cpus(1, 96)), 1U);
  EXPECT_EQ(lanes(on_auto(1), cpus(64, 64, 4)), 2U) << "a cgroup's quota";
  EXPECT_EQ(lanes(on_auto(1), cpus(0, 0)), 1U);
}

TEST(DrivenNic, AutoLanesGiveTheirReason) {
  EXPECT_EQ(plan_device(on_auto(8), cpus(32, 32), {}).lanes_reason,
            "auto: 4 for 100000 Mb/s, and 4 CPUs for each of 8 NICs suffice for 2");
  EXPECT_EQ(plan_device(on_auto(1, 0), cpus(1, 8), {}).lanes_reason,
            "auto: 2 for an unknown speed, and 1 CPU suffices for 1");
}

TEST(DrivenNic, MoreConfiguredLanesThanCpusGiveAWarning) {
  EXPECT_TRUE(plan_device(pci(1, 3), cpus(64, 64), {}).warning.empty());
  for (const std::size_t count : {1U, 2U}) {
    const DevicePlan plan = plan_device(pci(8, 4), cpus(count, 64), {});
    EXPECT_EQ(plan.lanes.size(), 4U);
    EXPECT_EQ(plan.warning, "queues = 4 in the config, and this process may run on " +
                                std::to_string(count) +
                                " CPUs, which they share: that costs time; write queues = " +
                                std::to_string(count) + ", or queues = \"auto\"");
  }
  EXPECT_FALSE(plan_device(pci(1, 4), cpus(64, 64, 3), {}).warning.empty()) << "a quota";
}

TEST(DrivenNic, FewerQueuesThanPlannedAreReportedAndGetHelpers) {
  DeviceFacts facts = on_auto(1);
  ASSERT_EQ(plan_device(facts, cpus(64, 64), {}).lanes.size(), 4U);
  facts.available_lanes = 1;
  const DevicePlan plan = plan_device(facts, cpus(64, 64), {});
  EXPECT_EQ(plan.lanes.size(), 1U);
  EXPECT_EQ(plan.helpers, 4U);
  EXPECT_TRUE(plan.lanes_reason.ends_with(", of which the NIC has 1")) << plan.lanes_reason;
}

TEST(DrivenNic, TextsDescribeThePlan) {
  config::Poller settings;
  settings.mode = config::PollerMode::kDedicated;
  settings.cpus = {5, 6};
  EXPECT_EQ(pollers_text(plan_device(pci(1, 2), cpus(8, 8), settings)),
            "2 lanes, their pollers dedicated (as poller.mode says) on CPU 5, 6");
  EXPECT_EQ(pollers_text(plan_device(pci(1), cpus(2, 2), {})),
            "poller shared with NCCL's threads (2 CPUs, 3 wanted)");
  DevicePlan plan = plan_device(on_auto(1), cpus(4, 4), {});
  EXPECT_EQ(lanes_text(plan), "up to 2 lanes (auto: 4 for 100000 Mb/s, and 4 CPUs suffice for 2)");
  EXPECT_EQ(lanes_text(plan_device(pci(1, 3), cpus(4, 4), {})), "3 lanes");
  plan = plan_device(on_auto(1), cpus(2, 2), {});
  EXPECT_EQ(pollers_text(plan),
            "1 lane (auto: 4 for 100000 Mb/s, and 2 CPUs suffice for 1), its poller shared with "
            "NCCL's threads (2 CPUs, 3 wanted)");
  EXPECT_EQ(helpers_text(plan), "no workers (0 CPUs to spare for this NIC)");
  settings.workers = 1;
  EXPECT_EQ(helpers_text(plan_device(pci(1), cpus(8, 8), settings)),
            "1 worker (as poller.workers says)");
}

TEST(MeshLanes, FollowTheSpareCpusOfEachProcess) {
  EXPECT_EQ(mesh_lanes(2, 2), 1U);
  EXPECT_EQ(mesh_lanes(8, 2), 2U);
  EXPECT_EQ(mesh_lanes(32, 2), 6U);
  EXPECT_EQ(mesh_lanes(128, 8), 4U);
}

}  // namespace
}  // namespace ztcp::plan
