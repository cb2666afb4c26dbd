// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Communicators, and the devices they are shown.
#include "plugin/net.h"

#include <array>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/plugin/net_fixture.h"
#include "transport/stats/communicator_times.h"

namespace ztcp::plugin {
namespace {

TEST_F(NetTest, StartUpIsToldWhetherNcclAsksForATuner) {
  ASSERT_TRUE(net_.init(/*asks_tuner=*/false));
  EXPECT_FALSE(was_asked_);
}

TEST_F(NetTest, TablesWithContextsAskForATuner) {
  ASSERT_TRUE(net_.init_context({}));
  EXPECT_TRUE(was_asked_);
}

TEST_F(NetTest, NothingWorksBeforeInit) {
  EXPECT_FALSE(net_.device_count());
  EXPECT_FALSE(net_.device(0));
  EXPECT_FALSE(net_.listen(nullptr, 0, handle_));
  EXPECT_FALSE(net_.connect(nullptr, 0, handle_));
  net_.finalize(nullptr);
  net_.close(nullptr);
  net_.drain();
}

TEST_F(NetTest, StartsOnceForManyCommunicators) {
  Context* const a = new_context();
  Context* const b = new_context();
  EXPECT_NE(a, b);
  EXPECT_EQ(starts_, 1);
  net_.finalize(a);
  net_.finalize(b);
  new_context();
  EXPECT_EQ(starts_, 1) << "a working transport belongs to the process";
}

TEST_F(NetTest, EndOfACommunicatorNamesItsStragglers) {
  const auto context = net_.init_context({.communicator = 0x4d});
  ASSERT_TRUE(context);
  for (const char* peer : {"a", "b", "c"})
    stats::communicator_times().add(0x4d, {peer, stats::Way::kReceive, 100, 100'000'000});
  stats::communicator_times().add(0x4d, {"gpu-07", stats::Way::kReceive, 100, 900'000'000});
  const test::LogCapture log;
  net_.finalize(*context);
  net_.finalize(*context);
  ASSERT_EQ(log.infos().size(), 1U);
  EXPECT_NE(log.infos()[0].find("stragglers of communicator 0x4d: receives from gpu-07 took 9.000 "
                                "ms, 8.000 ms longer than the median of 4 peers"),
            std::string::npos)
      << log.infos()[0];
}

TEST_F(NetTest, AFailedStartIsTriedAgain) {
  fail_start_ = true;
  start_refusal_ = "no config";
  EXPECT_FALSE(net_.init_context({}));
  net_.finalize(nullptr);  // NCCL 2.28 does this after a failed init.
  start_refusal_.clear();
  EXPECT_TRUE(net_.init_context({}));
  EXPECT_EQ(starts_, 2);
}

TEST_F(NetTest, ShowsDevicesAndOnlyThose) {
  ASSERT_TRUE(net_.init());
  EXPECT_EQ(net_.device_count().value(), 2);
  EXPECT_EQ((*net_.device(1))->properties.name, "ztcp1");
  EXPECT_FALSE(net_.device(2));
  EXPECT_FALSE(net_.device(-1));
  EXPECT_TRUE(warned(log_, "no device 2: there are 2"));
}

TEST_F(NetTest, FinalizeReapsForgottenConnections) {
  Context* const forgetful = new_context();
  Context* const other = new_context();
  connect_pair(forgetful);
  ASSERT_TRUE(net_.listen(forgetful, 0, handle_));
  transport_->delay_ready(1000);
  std::array<std::byte, kHandleBytes> copy = handle_;
  ASSERT_TRUE(net_.connect(forgetful, 0, copy));
  ASSERT_TRUE(net_.listen(other, 1, handle_));
  EXPECT_EQ(transport_->live_comms(), 3);
  EXPECT_EQ(transport_->live_listeners(), 2);

  net_.finalize(forgetful);
  EXPECT_EQ(transport_->live_comms(), 0);
  EXPECT_EQ(transport_->live_listeners(), 1) << "the other communicator's";
  net_.close(sender_);  // Late: ignored.
  net_.finalize(forgetful);
  net_.finalize(other);
  EXPECT_EQ(transport_->live_listeners(), 0);
}

TEST_F(NetTest, OneHundredCommunicatorsInALoop) {
  for (int i = 0; i < 100; ++i) {
    Context* const context = new_context();
    connect_pair(context);
    net_.close(sender_);
    net_.close(receiver_);
    net_.finalize(context);
  }
  EXPECT_EQ(transport_->live_comms(), 0);
  EXPECT_EQ(transport_->live_listeners(), 0);
  EXPECT_EQ(starts_, 1);
}

TEST_F(NetTest, ARefusingStartupShowsDevicesAndFailsByName) {
  start_refusal_ = "ztcp.conf can't be honoured: mtu";
  Context* const context = new_context();
  EXPECT_EQ(net_.device_count().value(), 2);
  const auto listening = net_.listen(context, 0, handle_);
  ASSERT_TRUE(listening);
  EXPECT_FALSE(net_.accept(*listening));
  EXPECT_TRUE(warned(log_, "accepting on ztcp0 failed: ztcp.conf can't be honoured: mtu"));

  std::array<std::byte, kHandleBytes> healthy{};
  encode_handle(PeerHandle{}, healthy);
  const auto connected = net_.connect(context, 1, healthy);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kBadConfig);
  EXPECT_TRUE(warned(log_, "connecting from ztcp1 failed: ztcp.conf can't be honoured: mtu"));
}

TEST_F(NetTest, AMendedConfigIsSeenByTheNextCommunicator) {
  start_refusal_ = "mtu";
  Context* const broken = new_context();
  start_refusal_.clear();
  net_.finalize(broken);
  new_context();
  EXPECT_EQ(starts_, 2);
  EXPECT_TRUE(net_.listen(nullptr, 0, handle_));
  EXPECT_TRUE(std::holds_alternative<PeerHandle>(decode_handle(handle_)));
}

TEST_F(NetTest, CommunicatorsComeAndGoOnManyThreads) {
  ASSERT_TRUE(net_.init());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        Context* const context = *net_.init_context({});
        std::array<std::byte, kHandleBytes> handle{};
        const auto listening = net_.listen(context, 0, handle);
        const auto sender = net_.connect(context, 0, handle);
        const auto receiver = net_.accept(*listening);
        EXPECT_TRUE(sender && *sender && receiver && *receiver);
        EXPECT_EQ((*net_.device(0))->properties.name, "ztcp0");
        if (i % 2 == 0) net_.close(*sender);
        net_.finalize(context);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(transport_->live_comms(), 0);
  EXPECT_EQ(transport_->live_listeners(), 0);
}

TEST_F(NetTest, ACommunicatorsOptionsReachTheTransport) {
  Context* const context = *net_.init_context({.communicator = 77, .traffic_class = 3});
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  EXPECT_EQ(transport_->last_options().communicator, 77U);
  EXPECT_EQ(transport_->last_options().traffic_class, 3);
  ASSERT_TRUE(net_.connect(nullptr, 0, handle_, {.traffic_class = 5}));  // v10 has no context.
  EXPECT_EQ(transport_->last_options().traffic_class, 5);
  ASSERT_TRUE(net_.connect(context, 0, handle_));
  EXPECT_EQ(transport_->last_options().communicator, 77U);
}

TEST_F(NetTest, ProcessEndDrainsTheTransport) {
  ASSERT_TRUE(net_.init());
  net_.drain();
  EXPECT_EQ(transport_->drains(), 1);
}

}  // namespace
}  // namespace ztcp::plugin
