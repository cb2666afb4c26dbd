// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The blocking connect and accept of old tables.
#include <algorithm>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "plugin/net.h"
#include "tests/unit/plugin/net_fixture.h"

namespace ztcp::plugin {
namespace {

TEST_F(NetTest, BlockingConnectAndAcceptComplete) {
  ASSERT_TRUE(net_.init());
  const auto listening = net_.listen(nullptr, 0, std::span(handle_).first(kShortHandleBytes));
  ASSERT_TRUE(listening);
  const auto sender = net_.connect_blocking(0, std::span(handle_).first(kShortHandleBytes));
  ASSERT_TRUE(sender);
  EXPECT_NE(*sender, nullptr);
  const auto receiver = net_.accept_blocking(*listening);
  ASSERT_TRUE(receiver);
  EXPECT_NE(*receiver, nullptr);
}

TEST_F(NetTest, AShortHandleWithoutRoomForTheWatchIsToldOnceAndConnects) {
  ASSERT_TRUE(net_.init());
  transport_->lengthen_handles();
  const auto handle = std::span(handle_).first(kShortHandleBytes);
  const auto told = [&] {
    return std::ranges::count_if(log_.infos(), [](const std::string& line) {
      return line.find("ztcp0: peers notice the death of this process by its silence alone") == 0;
    });
  };
  ASSERT_TRUE(net_.listen(nullptr, 0, handle_));
  EXPECT_EQ(told(), 0);
  ASSERT_TRUE(net_.listen(nullptr, 0, handle));
  const auto listening = net_.listen(nullptr, 0, handle);
  EXPECT_EQ(told(), 1);
  ASSERT_TRUE(net_.connect_blocking(0, handle));
  EXPECT_TRUE(net_.accept_blocking(*listening));
}

// The connect timeout (none at all here) is over long before the peer connects.
TEST_F(NetTest, BlockingAcceptWaitsForALatePeer) {
  const test::LogCapture& log = log_;
  ASSERT_TRUE(net_.init());
  const auto listening = net_.listen(nullptr, 0, std::span(handle_).first(kShortHandleBytes));
  ASSERT_TRUE(listening);
  std::thread late([&] {
    while (log.warned().find("still waiting") == std::string::npos) std::this_thread::yield();
    EXPECT_TRUE(net_.connect_blocking(0, std::span(handle_).first(kShortHandleBytes)));
  });
  const auto receiver = net_.accept_blocking(*listening);
  late.join();
  ASSERT_TRUE(receiver);
  EXPECT_NE(*receiver, nullptr);
  EXPECT_EQ(log.warnings().size(), 1U) << "it says so once";
}

TEST_F(NetTest, BlockingAcceptEndsWithItsNic) {
  const test::LogCapture& log = log_;
  ASSERT_TRUE(net_.init());
  const auto listening = net_.listen(nullptr, 0, std::span(handle_).first(kShortHandleBytes));
  ASSERT_TRUE(listening);
  std::thread killer([&] {
    while (log.warned().find("still waiting") == std::string::npos) std::this_thread::yield();
    transport_->kill({Errc::kNoDevice, 0, "NIC taken out"});
  });
  const auto receiver = net_.accept_blocking(*listening);
  killer.join();
  ASSERT_FALSE(receiver);
  EXPECT_EQ(receiver.error().code(), Errc::kNoDevice);
}

TEST_F(NetTest, BlockingConnectEndsWithTheConnectTimeout) {
  ASSERT_TRUE(net_.init());
  ASSERT_TRUE(net_.listen(nullptr, 0, std::span(handle_).first(kShortHandleBytes)));
  transport_->delay_ready(1000);
  const auto sender = net_.connect_blocking(0, std::span(handle_).first(kShortHandleBytes));
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code(), Errc::kTimedOut);
  EXPECT_EQ(transport_->live_comms(), 0) << "the attempt nobody will ask about again";
}

}  // namespace
}  // namespace ztcp::plugin
