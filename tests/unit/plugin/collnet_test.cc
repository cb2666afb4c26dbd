// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <latch>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "plugin/collnet_meeting.h"
#include "tests/unit/plugin/collnet_fixture.h"

namespace ztcp::plugin {
namespace {

TEST_F(CollNetTest, SwitchedOff_ShowsNoDevice) {
  collnet_.is_on = false;
  ASSERT_TRUE(net_.init());
  EXPECT_EQ(*collective_.init_context({}), nullptr);
  EXPECT_EQ(*collective_.device_count(), 0);
}

TEST_F(CollNetTest, SwitchedOn_ShowsTheNetworksDevices) {
  ASSERT_TRUE(net_.init());
  EXPECT_EQ(*collective_.device_count(), 2);
}

TEST_F(CollNetTest, BeforeTheNetworksInit_Fails) { EXPECT_FALSE(collective_.device_count()); }

TEST_F(CollNetTest, TwoAndThreeHosts_Reduce) {
  for (const std::size_t hosts : {2, 3}) {
    hosts_.clear();
    handles_.clear();
    connect(hosts);
    for (const std::size_t count : {1, 1000, 300'000}) {
      start(count);
      finish();
      expect_sums();
    }
    for (const Host& host : hosts_) {
      ASSERT_TRUE(host.group->deregister_memory(host.from_memory));
      collective_.close(host.group);
      collective_.finalize(host.context);
    }
    EXPECT_EQ(transport_->live_comms(), 0);
    EXPECT_EQ(transport_->live_keys(), 0);
    EXPECT_EQ(transport_->live_listeners(), 0);
  }
}

// Bytes of this process that a forked child would not get.
std::size_t bytes_kept_from_children() {
  std::ifstream mappings("/proc/self/smaps");
  std::size_t kib = 0;
  std::size_t all = 0;
  for (std::string line; std::getline(mappings, line);) {
    if (line.starts_with("Size:")) kib = std::stoul(line.substr(5));
    if (line.starts_with("VmFlags:") && line.find(" dc") != std::string::npos) all += kib << 10U;
  }
  return all;
}

TEST_F(CollNetTest, ScratchMemory_IsNotInherited) {
  const std::size_t before = bytes_kept_from_children();
  connect(2);
  EXPECT_GE(bytes_kept_from_children() - before,
            2 * reduce::AllReduce::scratch_bytes(2, reduce::Wire::kAsIs));
}

TEST_F(CollNetTest, Bfloat16Wire_KeepsSmallWholeNumbers) {
  collnet_.wire = reduce::Wire::kBfloat16;
  connect(3);
  start(100'000);
  finish();
  // Sums to 198 have 8 bits.
  expect_sums();
}

TEST_F(CollNetTest, Float8Wire_ErrsByASixteenth) {
  collnet_.wire = reduce::Wire::kFloat8;
  connect(2);
  start(100'000);
  finish();
  expect_sums(1.0 / 16);
  EXPECT_NE(hosts_[0].to[20], 2 * 20 + 3) << "21 and 22 have more than 4 bits";
}

TEST_F(CollNetTest, Workers_ReduceTheSame) {
  collnet_.workers = 2;
  collnet_.wire = reduce::Wire::kBfloat16;
  connect(2);
  start(300'000);
  finish();
  expect_sums();
}

TEST_F(CollNetTest, MemoryDeregisteredUnderWay_IsNotUsedAfterwards) {
  collnet_.workers = 2;
  collnet_.wire = reduce::Wire::kBfloat16;
  connect(2);
  start(300'000);
  for (Host& host : hosts_) {
    ASSERT_TRUE(host.group->deregister_memory(host.from_memory));
    ASSERT_TRUE(host.group->deregister_memory(host.to_memory));
    // AddressSanitizer and ThreadSanitizer see a later access.
    host.from = {};
    host.to = {};
  }
}

TEST_F(CollNetTest, Finalize_EndsWhatNcclForgot) {
  connect(2);
  start(1000);
  for (const Host& host : hosts_) collective_.finalize(host.context);
  EXPECT_EQ(transport_->live_comms(), 0);
  EXPECT_EQ(transport_->live_keys(), 0);
  // A late close of the same object.
  collective_.close(hosts_[0].group);
}

TEST_F(CollNetTest, MissingHost_FailsInTimeAndIsNamed) {
  connect_timeout_ = std::chrono::milliseconds(30);
  listen(3);
  EXPECT_FALSE(collective_.connect(handles_, 0, hosts_[0].listening));
  EXPECT_TRUE(warned(log_, "connecting 3 hosts took longer than 30 ms"));
  EXPECT_TRUE(warned(log_, "host 1, 2 of the group is missing"));
  for (const Host& host : hosts_) collective_.finalize(host.context);
  EXPECT_EQ(transport_->live_comms(), 0);
  EXPECT_EQ(transport_->live_listeners(), 0);
}

// NCCL forgets the listener without closing it, and its tables before v11 have no finalize.
TEST_F(CollNetTest, FailedConnect_ClosesTheListener) {
  connect_timeout_ = std::chrono::milliseconds(30);
  listen(2);
  EXPECT_FALSE(collective_.connect(handles_, 0, hosts_[0].listening));
  EXPECT_EQ(transport_->live_listeners(), 1);
  EXPECT_FALSE(collective_.connect(handles_, 0, hosts_[0].listening));
  EXPECT_FALSE(collective_.connect(handles_, 0, nullptr));
  EXPECT_TRUE(warned(log_, "without a listener; an earlier connect failed"));
  collective_.close(hosts_[0].listening);
}

TEST_F(CollNetTest, DifferentWires_AreRefusedByName) {
  listen(2);
  in_threads([&](std::size_t rank) {
    const CollnetSettings settings{.wire =
                                       rank == 0 ? reduce::Wire::kFloat8 : reduce::Wire::kBfloat16};
    CollMeeting meeting(net_, *hosts_[rank].listening, handles_, rank, settings);
    EXPECT_FALSE(meeting.meet(std::chrono::milliseconds(500)));
  });
  EXPECT_TRUE(warned(log_, "set ZTCP_COLLNET_WIRE (or wire in [collnet]) to the same"));
  EXPECT_TRUE(warned(log_, "sends sums as bf16, this host as fp8"));
}

// The tuner goes by the speed, and the ranks would wait for each other for ever.
TEST_F(CollNetTest, SpeedsWithOtherSizes_AreRefusedByName) {
  listen(2);
  in_threads([&](std::size_t rank) {
    const CollnetSettings settings{.speed_mbps = rank == 0 ? 25'000U : 100'000U,
                                   .sizes = rank == 0 ? 7U : 1U};
    CollMeeting meeting(net_, *hosts_[rank].listening, handles_, rank, settings);
    EXPECT_FALSE(meeting.meet(std::chrono::milliseconds(500)));
  });
  EXPECT_TRUE(warned(log_, "have 100000 Mb/s together, this host's 25000") ||
              warned(log_, "have 25000 Mb/s together, this host's 100000"))
      << log_.warned();
}

TEST_F(CollNetTest, SpeedsWithTheSameSizes_Connect) {
  listen(2);
  in_threads([&](std::size_t rank) {
    const CollnetSettings settings{.speed_mbps = rank == 0 ? 10'000U : 25'000U, .sizes = 7};
    CollMeeting meeting(net_, *hosts_[rank].listening, handles_, rank, settings);
    EXPECT_TRUE(meeting.meet(std::chrono::seconds(20)));
    EXPECT_TRUE(meeting.confirm(std::chrono::seconds(20)));
  });
}

// NCCL hangs if one host has a group and another has none.
TEST_F(CollNetTest, AHostThatIsNotReady_IsWaitedForBeyondTheTimeout) {
  connect_timeout_ = std::chrono::milliseconds(500);
  listen(2);
  std::atomic<bool> is_ready{false};
  in_threads([&](std::size_t rank) {
    if (rank == 0) {
      EXPECT_TRUE(collective_.connect(handles_, 0, hosts_[0].listening));
      EXPECT_TRUE(is_ready);
      return;
    }
    CollMeeting meeting(net_, *hosts_[1].listening, handles_, 1, collnet_);
    EXPECT_TRUE(meeting.meet(std::chrono::seconds(20)));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto is_named = [&] { return warned(log_, "CollNet: still waiting after 500 ms for "); };
    while (!is_named() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_TRUE(is_named());
    is_ready = true;
    EXPECT_TRUE(meeting.confirm(std::chrono::seconds(20)));
  });
}

TEST_F(CollNetTest, AHostThatIsLostAfterTheFirstMessages_FailsTheOther) {
  listen(2);
  std::latch have_met(2);
  in_threads([&](std::size_t rank) {
    CollMeeting meeting(net_, *hosts_[rank].listening, handles_, rank, collnet_);
    EXPECT_TRUE(meeting.meet(std::chrono::seconds(20)));
    have_met.arrive_and_wait();
    if (rank == 0)
      EXPECT_FALSE(meeting.confirm(std::chrono::seconds(20)));
    else
      transport_->kill({Errc::kPeerClosed, 0, "recv"});
  });
  EXPECT_EQ(transport_->live_keys(), 0);
  for (const Host& host : hosts_) collective_.finalize(host.context);
  EXPECT_EQ(transport_->live_comms(), 0);
}

TEST_F(CollNetTest, RefusingHost_FailsAtOnceWithItsReason) {
  start_refusal_ = "/etc/ztcp.conf can't be honoured";
  listen(2);
  EXPECT_EQ(*collective_.device_count(), 2);
  EXPECT_FALSE(collective_.connect(handles_, 0, hosts_[0].listening));
  EXPECT_TRUE(warned(log_, "host-a"));
  for (const Host& host : hosts_) collective_.finalize(host.context);
}

TEST_F(CollNetTest, ACutFirstMessage_IsRefusedByName) {
  listen(2);
  auto handle = hosts_[0].handle;
  const auto sender = net_.connect(hosts_[1].context, 0, handle);
  ASSERT_TRUE(sender && *sender != nullptr);
  const CollHello hello{.rank = 1, .ranks = 2};
  ASSERT_TRUE((*sender)->post_send(std::as_bytes(std::span(&hello, 1)).first(16), 0, nullptr));
  EXPECT_FALSE(collective_.connect(handles_, 0, hosts_[0].listening));
  EXPECT_TRUE(warned(log_, "has another release of ztcp; give all hosts of the job the same"));
}

// Its ranks would choose CollNet for other sizes, and wait for each other for ever.
TEST_F(CollNetTest, AnotherTableOfSizes_IsRefusedByName) {
  listen(2);
  for (std::size_t lane = 0; lane < reduce::kLanes; ++lane) {
    auto handle = hosts_[0].handle;
    const auto sender = net_.connect(hosts_[1].context, 0, handle);
    ASSERT_TRUE(sender && *sender != nullptr);
    CollHello hello{.lane = static_cast<std::uint8_t>(lane), .rank = 1, .ranks = 2};
    hello.table ^= 1;
    ASSERT_TRUE((*sender)->post_send(std::as_bytes(std::span(&hello, 1)), 0, nullptr));
  }
  EXPECT_FALSE(collective_.connect(handles_, 0, hosts_[0].listening));
  EXPECT_TRUE(warned(log_, "has another release of ztcp; give all hosts of the job the same"));
}

TEST_F(CollNetTest, LostPeer_FailsTheRequest) {
  connect(2);
  prepare(300'000);
  const auto job = start_on(0, 300'000);
  ASSERT_TRUE(job && *job != nullptr);
  transport_->kill({Errc::kPeerClosed, 0, "recv"});
  const auto done = (*job)->test();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kPeerClosed);
}

TEST_F(CollNetTest, DifferentSizes_AreRefusedByName) {
  connect(2);
  prepare(10);
  const auto fewer = start_on(0, 9);
  ASSERT_TRUE(fewer && *fewer != nullptr);
  // The other's contribution is there at once.
  EXPECT_FALSE(start_on(1, 10));
  EXPECT_TRUE(warned(log_, "all ranks must reduce the same number of elements"));
}

}  // namespace
}  // namespace ztcp::plugin
