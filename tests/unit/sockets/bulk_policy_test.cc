// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/bulk_policy.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/cpu_view.h"

namespace ztcp::sockets {
namespace {

using test::cpus;

struct Case {
  const char* name;
  comms::CpuView view;
  BulkPlace place;
  std::size_t queues;
  const char* reason;
  std::size_t views = 1;
  std::size_t workers = 0;
  std::uint32_t flows = 1;
};

class AutoBulk : public testing::TestWithParam<Case> {
 protected:
  static void expect_fits(bool tunes_channels) {
    config::Fabric fabric;
    fabric.tunes_channels = tunes_channels;
    const BulkPolicy policy = choose_bulk(fabric, GetParam().view, GetParam().place);
    EXPECT_EQ(policy.queues, GetParam().queues);
    EXPECT_EQ(policy.workers, GetParam().workers);
    EXPECT_EQ(policy.flows, GetParam().flows);
    EXPECT_EQ(policy.reason, GetParam().reason);
    EXPECT_EQ(policy.views, GetParam().views);
  }
};
std::string name_of(const testing::TestParamInfo<Case>& row) { return row.param.name; }

class TunedBulk : public AutoBulk {};

TEST_P(TunedBulk, FitsTheMachine) { expect_fits(true); }

INSTANTIATE_TEST_SUITE_P(
    Machines, TunedBulk,
    testing::Values(
        Case{"one_cpu", cpus(1, 1), {}, 1, "1 CPU"}, Case{"two_cpus", cpus(2, 2), {}, 1, "2 CPUs"},
        Case{"three_cpus", cpus(3, 3), {}, 1, "3 CPUs", 1, 0, 1},
        Case{"two_ranks_of_a_small_machine",
             cpus(8, 8),
             {.ranks = {2, "2 GPUs"}},
             2,
             "4 CPUs for each of 2 ranks (2 GPUs)",
             4},
        Case{"two_ranks_of_a_large_one",
             cpus(32, 32),
             {.ranks = {2, "LOCAL_WORLD_SIZE"}},
             12,
             "16 CPUs for each of 2 ranks (LOCAL_WORLD_SIZE)",
             8},
        Case{"just_enough_for_twelve", cpus(14, 14), {}, 12, "14 CPUs", 8},
        Case{"one_less", cpus(13, 13), {}, 8, "13 CPUs", 8},
        Case{"just_enough_for_eight", cpus(10, 10), {}, 8, "10 CPUs", 8},
        Case{"just_enough_for_eight_devices", cpus(8, 8), {}, 6, "8 CPUs", 8},
        Case{"too_few_for_them", cpus(7, 7), {}, 4, "7 CPUs", 4},
        Case{"one_device_told", cpus(16, 16), {.views = 1}, 2, "16 CPUs", 1, 8, 5},
        Case{"two_devices_told", cpus(16, 16), {.views = 2}, 12, "16 CPUs", 2},
        Case{"two_devices_of_few_cpus", cpus(3, 3), {.views = 2}, 1, "3 CPUs", 2},
        Case{"a_mask_of_its_own", cpus(6, 96), {.ranks = {8, "8 GPUs"}}, 4, "6 CPUs", 4},
        Case{"a_mask_for_all",
             cpus(48, 96),
             {.ranks = {8, "8 GPUs"}},
             4,
             "6 CPUs for each of 8 ranks (8 GPUs)",
             4},
        Case{"a_quota", cpus(64, 64, 4), {}, 2, "4 CPUs", 4},
        Case{"two_interfaces", cpus(32, 32), {.devices = 2}, 12, "32 CPUs", 4},
        Case{"two_interfaces_of_fewer_cpus", cpus(16, 16), {.devices = 2}, 6, "16 CPUs", 4},
        Case{"two_interfaces_of_few_cpus", cpus(12, 12), {.devices = 2}, 1, "12 CPUs", 1, 4, 5},
        Case{"three_interfaces", cpus(64, 64), {.devices = 3}, 2, "64 CPUs", 1, 8, 5},
        Case{"a_slow_interface",
             cpus(16, 16),
             {.speed_mbps = 10'000},
             1,
             "16 CPUs, 10 Gb/s",
             1,
             1,
             3},
        Case{"a_faster_one", cpus(16, 16), {.speed_mbps = 100'000}, 8, "16 CPUs, 100 Gb/s", 8},
        Case{"a_fast_one", cpus(16, 16), {.speed_mbps = 200'000}, 12, "16 CPUs", 8},
        Case{"more_ranks_than_cpus",
             cpus(2, 2),
             {.ranks = {64, "LOCAL_WORLD_SIZE"}},
             1,
             "1 CPU for each of 64 ranks (LOCAL_WORLD_SIZE)"}),
    name_of);

class UntunedBulk : public AutoBulk {};

TEST_P(UntunedBulk, FitsTheMachine) { expect_fits(false); }

INSTANTIATE_TEST_SUITE_P(
    Machines, UntunedBulk,
    testing::Values(Case{"two_cpus", cpus(2, 2), {}, 1, "2 CPUs"},
                    Case{"a_small_machine", cpus(4, 4), {}, 1, "4 CPUs", 1, 1, 3},
                    Case{"sixteen_cpus", cpus(16, 16), {}, 2, "16 CPUs", 1, 8, 5},
                    Case{"three_devices_told", cpus(16, 16), {.views = 3}, 12, "16 CPUs", 3},
                    Case{"a_faster_interface",
                         cpus(64, 64),
                         {.speed_mbps = 25'000},
                         1,
                         "64 CPUs, 25 Gb/s",
                         1,
                         2,
                         4}),
    name_of);

TEST(ToldBulk, IsAsToldWhereThereIsMoreThanOneCpu) {
  config::Fabric fabric;
  fabric.tunes_channels = true;
  fabric.poller.workers = 12;
  BulkPolicy policy = choose_bulk(fabric, cpus(4, 4), {});
  EXPECT_EQ(policy.workers, 12U);
  EXPECT_EQ(policy.queues, 3U);
  EXPECT_EQ(policy.views, 1U);
  EXPECT_EQ(policy.reason, "as poller.workers says");
  policy = choose_bulk(fabric, cpus(1, 4), {});
  EXPECT_EQ(policy.workers, 0U);
  EXPECT_EQ(policy.reason, "poller.workers is 12, but the process may use one CPU");
  fabric.poller.workers = 0;
  EXPECT_EQ(choose_bulk(fabric, cpus(64, 64), {}).workers, 0U);
  fabric.messages.flows = 2;
  EXPECT_EQ(choose_bulk(fabric, cpus(64, 64), {}).flows, 2U);
}

TEST(Queues, ShareTheWorkers) {
  config::Fabric fabric;
  fabric.poller.workers = 11;
  const BulkPolicy policy = choose_bulk(fabric, cpus(16, 16), {.views = 1});
  EXPECT_EQ(policy.queues, 2U);
  EXPECT_EQ(workers_of(policy, 0), 6U);
  EXPECT_EQ(workers_of(policy, 1), 5U);
}

TEST(Queues, HaveAThreadThatTakesOverWhereThereAreCpus) {
  config::Fabric fabric;
  fabric.tunes_channels = true;
  EXPECT_FALSE(choose_bulk(fabric, cpus(2, 2), {}).takes_over);
  EXPECT_TRUE(choose_bulk(fabric, cpus(3, 3), {}).takes_over);
  fabric.poller.workers = 0;
  EXPECT_FALSE(choose_bulk(fabric, cpus(16, 16), {}).takes_over);
  // Who has one for all turns needs no other.
  fabric.poller.workers = 8;
  fabric.poller.mode = config::PollerMode::kDedicated;
  EXPECT_FALSE(choose_bulk(fabric, cpus(16, 16), {}).takes_over);
  EXPECT_EQ(choose_bulk(fabric, cpus(16, 16), {}).queues, 1U);
  EXPECT_EQ(choose_bulk(fabric, cpus(16, 16), {}).views, 1U);
}

TEST(Queues, SayWhoRunsTheirTurns) {
  EXPECT_STREQ(turns_text(choose_bulk({}, cpus(2, 2), {}), false), "in NCCL's threads");
  const BulkPolicy taking_over = choose_bulk({}, cpus(3, 3), {});
  EXPECT_STREQ(turns_text(taking_over, false), "in NCCL's threads, bulk in its own");
  EXPECT_STREQ(turns_text(taking_over, true), "a thread of its own");
}

}  // namespace
}  // namespace ztcp::sockets
