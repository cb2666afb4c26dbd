// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/queue_choice.h"

#include <gtest/gtest.h>

#include "tests/support/cpu_view.h"

namespace ztcp::ustack {
namespace {

using test::cpus;

config::Nic nic(std::uint32_t queues, std::uint32_t speed_mbps = 100'000,
                std::uint16_t mtu_bytes = 1500) {
  config::Nic out;
  out.driver = config::NicDriver::kPci;
  out.queues = queues;
  out.speed_mbps = speed_mbps;
  out.mtu_bytes = mtu_bytes;
  return out;
}

std::uint16_t chosen(const config::Nic& one, const comms::CpuView& view, std::size_t nics) {
  return choose_queues(one, view, nics).count;
}

TEST(QueueChoice, WhatTheConfigSaysIsTaken) {
  EXPECT_EQ(chosen(nic(3), cpus(64, 64), 1), 3);
  EXPECT_TRUE(choose_queues(nic(3), cpus(64, 64), 1).warning.empty());
  EXPECT_TRUE(choose_queues(nic(3), cpus(64, 64), 1).reason.empty());
}

// It works, and costs time: a cpuset of one, too.
TEST(QueueChoice, MoreThanThereAreCpusIsSaid) {
  for (const std::size_t count : {1U, 2U}) {
    const QueueChoice choice = choose_queues(nic(4), cpus(count, 64), 8);
    EXPECT_EQ(choice.count, 4);
    EXPECT_NE(choice.warning.find("queues = 4"), std::string::npos) << choice.warning;
    EXPECT_NE(choice.warning.find("on " + std::to_string(count) + " CPUs"), std::string::npos);
    EXPECT_NE(choice.warning.find("write queues = " + std::to_string(count)), std::string::npos);
  }
  EXPECT_FALSE(choose_queues(nic(4), cpus(64, 64, 3), 1).warning.empty()) << "a cgroup's quota";
}

TEST(QueueChoice, AutoIsWhatTheSpeedCanUseAndTheCpusSufficeFor) {
  const auto a = config::kAutoQueues;
  EXPECT_EQ(chosen(nic(a), cpus(64, 64), 1), 4);
  EXPECT_EQ(chosen(nic(a, 25'000), cpus(64, 64), 1), 1) << "one core keeps up";
  EXPECT_EQ(chosen(nic(a, 50'000), cpus(64, 64), 1), 2);
  EXPECT_EQ(chosen(nic(a, 100'000, 9000), cpus(64, 64), 1), 2) << "large frames are fewer";
  EXPECT_EQ(chosen(nic(a, 400'000, 9000), cpus(64, 64), 1), 4) << "no more are chosen";
  EXPECT_EQ(chosen(nic(a, 0), cpus(64, 64), 1), 2) << "nobody told the speed";
  EXPECT_EQ(chosen(nic(a), cpus(32, 32), 8), 2) << "eight NICs share the CPUs";
  EXPECT_EQ(chosen(nic(a), cpus(12, 96), 8), 4) << "these were given to this process alone";
  EXPECT_EQ(chosen(nic(a), cpus(1, 96), 8), 1);
  EXPECT_EQ(chosen(nic(a), cpus(64, 64, 4), 1), 2) << "a cgroup's quota";
  EXPECT_EQ(chosen(nic(a), cpus(0, 0), 1), 1);
}

TEST(QueueChoice, AutoSaysWhy) {
  EXPECT_EQ(choose_queues(nic(config::kAutoQueues), cpus(32, 32), 8).reason,
            "auto: 4 for 100000 Mb/s, and 32 CPUs for 8 NICs suffice for 2");
  EXPECT_EQ(choose_queues(nic(config::kAutoQueues, 0), cpus(2, 8), 8).reason,
            "auto: 2 for an unknown speed, and 2 CPUs suffice for 1");
}

TEST(QueueChoice, TheNicsLineSaysWhatCameOfIt) {
  const QueueChoice told{.count = 2, .reason = {}, .warning = {}};
  EXPECT_EQ(pollers_text(1, {}), "poller");
  EXPECT_EQ(pollers_text(2, told), "2 queues, their pollers");
  const QueueChoice chosen{.count = 4, .reason = "auto: 4 for 100000 Mb/s", .warning = {}};
  EXPECT_EQ(pollers_text(4, chosen), "4 queues (auto: 4 for 100000 Mb/s), their pollers");
  EXPECT_EQ(pollers_text(1, chosen),
            "1 queue (auto: 4 for 100000 Mb/s, of which the NIC has 1), its poller");
}

}  // namespace
}  // namespace ztcp::ustack
