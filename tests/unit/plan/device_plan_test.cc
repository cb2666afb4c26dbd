// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/plan/device_plan.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/cpu_share.h"

namespace ztcp::plan {
namespace {

using test::cpus;

std::vector<DeviceFacts> all_kinds() {
  std::vector<DeviceFacts> kinds;
  for (const std::size_t count : {1U, 2U, 3U, 8U}) {
    for (const std::uint32_t speed : {0U, 10'000U, 100'000U, 400'000U}) {
      DeviceFacts facts;
      facts.count = count;
      facts.speed_mbps = speed;
      facts.is_kernels = true;
      for (const std::size_t devices : {1U, 8U}) {
        facts.nccl_devices = devices;
        kinds.push_back(facts);
      }
    }
    for (const bool is_embedded : {false, true}) {
      DeviceFacts facts;
      facts.count = count;
      facts.is_embedded = is_embedded;
      facts.told_lanes = config::kAutoQueues;
      facts.most_lanes = 4;
      kinds.push_back(facts);
    }
  }
  return kinds;
}

std::size_t lanes(const DeviceFacts& facts, const config::CpuShare& share) {
  return plan_device(facts, share, {}).lanes.size();
}

// No drop: neither at the mask that could just be each rank's own, nor anywhere else.
TEST(DevicePlan, MoreCpusNeverGiveFewerLanes) {
  for (const DeviceFacts& facts : all_kinds())
    for (const std::size_t ranks : {1U, 2U, 3U, 7U, 8U, 16U})
      for (const std::size_t online : {8U, 31U, 124U}) {
        const config::LocalRanks local{ranks, "test"};
        std::size_t before = 0;
        for (std::size_t mask = 1; mask <= online; ++mask) {
          const std::size_t now = lanes(facts, cpus(mask, online, 0, local));
          ASSERT_GE(now, before) << mask << " of " << online << " CPUs, " << ranks << " ranks, "
                                 << facts.count << " devices";
          ASSERT_GE(lanes(facts, cpus(mask, online + 1, 0, local)), now);
          before = now;
        }
        before = 0;
        for (std::size_t quota = 1; quota <= online; ++quota) {
          const std::size_t now = lanes(facts, cpus(online, online, quota, local));
          ASSERT_GE(now, before) << "quota " << quota << " of " << online << ", " << ranks;
          before = now;
        }
        EXPECT_EQ(before, lanes(facts, cpus(online, online, 0, local))) << "a quota of all";
      }
}

TEST(DevicePlan, NumberOfNcclDevicesIsIndependentOfTheCpus) {
  for (const DeviceFacts& facts : all_kinds())
    for (const std::size_t mask : {1U, 2U, 7U, 8U, 15U, 16U, 124U})
      for (const std::size_t quota : {0U, 1U, 5U})
        for (const std::size_t ranks : {1U, 8U})
          EXPECT_EQ(plan_device(facts, cpus(mask, 124, quota, {ranks, "test"}), {}).nccl_devices,
                    facts.nccl_devices);
}

TEST(DevicePlan, ThereIsAlwaysALane) {
  for (const DeviceFacts& facts : all_kinds()) EXPECT_GE(lanes(facts, {}), 1U);
}

// --- place_threads() -----------------------------------------------------------------------------

using Cpus = std::vector<std::uint32_t>;

DeviceFacts one_interface() {
  DeviceFacts facts;
  facts.is_kernels = true;
  facts.nccl_devices = 8;
  return facts;
}

TEST(PlaceThreads, ThreadsRunAsPlannedUnderTheSameMask) {
  const DevicePlan plan = plan_device(one_interface(), cpus(16, 16), {});
  const Placement placement = place_threads(plan, plan.allowed);
  EXPECT_EQ(placement.lane_cpus, std::vector<Cpus>(12, plan.allowed));
  EXPECT_EQ(placement.helper_cpus, plan.allowed);
  EXPECT_EQ(placement.warning, "");
}

// As NCCL does, between its init and the first listen.
TEST(PlaceThreads, ANarrowerMaskWithRoomForAllThreadsGivesNoWarning) {
  const DevicePlan plan = plan_device(one_interface(), cpus(128, 128, 0, {8, "8 GPUs"}), {});
  ASSERT_EQ(plan.lanes.size(), 12U);
  const Cpus socket = cpus(64, 64).allowed;
  const Placement placement = place_threads(plan, socket);
  EXPECT_EQ(placement.lane_cpus, std::vector<Cpus>(12, socket));
  EXPECT_EQ(placement.warning, "");
}

TEST(PlaceThreads, ATooNarrowMaskGivesAWarningAndCountsStay) {
  const DevicePlan plan = plan_device(one_interface(), cpus(16, 16), {});
  const Placement placement = place_threads(plan, {0, 1});
  EXPECT_EQ(placement.lane_cpus, std::vector<Cpus>(12, Cpus{0, 1}));
  EXPECT_EQ(
      placement.warning,
      "the process may run on 2 CPUs (0-1) now, and had 16 CPUs (0-15) when it was planned: "
      "12 threads share them, which costs time; set the mask before NCCL's init and leave it");
}

TEST(PlaceThreads, AnotherMaskIsUsed) {
  const DevicePlan plan = plan_device(one_interface(), cpus(2, 16), {});
  EXPECT_EQ(place_threads(plan, {8, 9}).lane_cpus, (std::vector<Cpus>{{8, 9}}));
}

TEST(PlaceThreads, APinnedLaneRunsOnTheOtherCpusIfItsOwnIsMissing) {
  config::Poller settings;
  settings.mode = config::PollerMode::kDedicated;
  settings.cpus = {2, 5};
  DeviceFacts facts;
  facts.told_lanes = 2;
  const DevicePlan plan = plan_device(facts, cpus(6, 6), settings);
  const Placement placement = place_threads(plan, {0, 1, 2, 4});
  EXPECT_EQ(placement.lane_cpus, (std::vector<Cpus>{{2}, {0, 1, 2, 4}}));
  EXPECT_EQ(placement.warning,
            "the process may run on 4 CPUs (0-2,4) now, and had 6 CPUs (0-5) when it was planned: "
            "threads planned for CPU 5 run on any of these; set the mask before NCCL's init and "
            "leave it");
}

// --- Questions of set-up and its check -----------------------------------------------------------

TEST(BusyCpus, CountLanesHelpersAndTheOtherThreads) {
  config::Nic nic;
  nic.driver = config::NicDriver::kPci;
  EXPECT_EQ(busy_cpus(nic, 0), 3U);
  nic.queues = 4;
  EXPECT_EQ(busy_cpus(nic, 2), 8U);
  nic.queues = config::kAutoQueues;
  EXPECT_EQ(busy_cpus(nic, 0), 3U) << "no more lanes than CPUs suffice for";
}

}  // namespace
}  // namespace ztcp::plan
