// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/net.h"

#include <cstring>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "plugin/memory.h"
#include "tests/unit/plugin/net_fixture.h"

namespace ztcp::plugin {
namespace {

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

class NetMerging : public NetTest {
 protected:
  static constexpr auto kFails = Net::Unmerged::kFails;
  static constexpr auto kAlone = Net::Unmerged::kShownAlone;
  Told<int> merge(std::vector<int> devices, Net::Unmerged unmerged = kFails) {
    return net_.merge(devices, unmerged);
  }
};

TEST_F(NetMerging, AMergedDeviceIsOneMore) {
  Context* const context = new_context();
  ASSERT_EQ(net_.device_count().value(), 2);
  const auto merged = merge({0, 1});
  ASSERT_TRUE(merged);
  EXPECT_EQ(*merged, 2);
  EXPECT_EQ(net_.device_count().value(), 3);
  EXPECT_EQ((*net_.device(2))->properties.name, "ztcp0+ztcp1");
  EXPECT_EQ((*net_.device(2))->parts, (std::vector{0, 1}));
  EXPECT_TRUE((*net_.device(1))->parts.empty());
  EXPECT_TRUE(net_.listen(context, 2, handle_));
  EXPECT_TRUE(net_.connect(context, 2, handle_));
  EXPECT_FALSE(net_.device(3));
}

TEST_F(NetMerging, WhatIsNotMergedIsRefusedWithoutAWarning) {
  other_devices_.resize(1);
  new_context();
  EXPECT_FALSE(merge({0, 2})) << "of two transports";
  EXPECT_EQ(log_.warned(), "");
  EXPECT_FALSE(merge({0, 9}));
  EXPECT_TRUE(warned(log_, "no device 9: there are 3"));
  EXPECT_FALSE(merge({}));
  EXPECT_EQ(net_.device_count().value(), 3);
}

// 2.24 to 2.26 ask for every NIC, and drop those that are no virtual device if there is one.
TEST_F(NetMerging, EachNicIsAVirtualDeviceForWhoAsksForEach) {
  other_devices_.resize(1);
  Context* const context = new_context();
  EXPECT_EQ(*merge({1}, kAlone), 3);
  EXPECT_EQ((*net_.device(3))->properties.name, "ztcp1");
  EXPECT_EQ((*net_.device(3))->parts, std::vector{1});
  EXPECT_EQ(*merge({0, 2}, kAlone), 4) << "of two transports: one more each";
  EXPECT_EQ(net_.device_count().value(), 6);
  EXPECT_EQ((*net_.device(4))->properties.name, "ztcp0");
  EXPECT_EQ((*net_.device(5))->parts, std::vector{2});
  EXPECT_TRUE(net_.listen(context, 3, handle_));
  EXPECT_EQ(transport_->last_device(), 1);
}

// 2.28 and later unload plugins between communicators, unless told to keep them.
TEST_F(NetMerging, MergedDevicesEndWhenNcclLoadsUsAnew) {
  Context* const first = new_context();
  ASSERT_EQ(net_.device_count().value(), 2);
  const char* const name = (*net_.device(*merge({1, 0})))->properties.name.c_str();
  net_.finalize(first);

  Context* const kept = new_context();
  EXPECT_TRUE(net_.device(2)) << "it was not loaded anew: it has not asked how many there are";
  EXPECT_EQ(net_.device_count().value(), 3);
  net_.finalize(kept);

  new_context();
  EXPECT_EQ(net_.device_count().value(), 2);
  EXPECT_FALSE(net_.device(2));
  EXPECT_EQ(*merge({0, 1}), 2);
  EXPECT_STREQ(name, "ztcp1+ztcp0") << "NCCL borrows names for good";
}

TEST_F(NetTest, MovesBytesAndReportsSizes) {
  connect_pair(new_context());
  std::array<std::byte, 256> from{};
  std::iota(reinterpret_cast<unsigned char*>(from.data()),
            reinterpret_cast<unsigned char*>(from.data()) + from.size(), std::uint8_t{1});
  std::array<std::byte, 1024> to{};
  const auto receive = irecv(*receiver_, to);
  const auto send = sender_->post_send(from, 0, nullptr);
  ASSERT_TRUE(receive && *receive != nullptr);
  ASSERT_TRUE(send && *send != nullptr);
  EXPECT_EQ(finish(*send), from.size());
  EXPECT_EQ(finish(*receive), from.size()) << "the size sent, not the size posted";
  EXPECT_EQ(std::memcmp(from.data(), to.data(), from.size()), 0);
}

TEST_F(NetTest, GivesThirtyTwoRequestsThenAsksToComeAgain) {
  connect_pair(new_context());
  std::array<std::byte, 8> buffer{};
  std::vector<Request*> requests;
  for (std::size_t i = 0; i < MemoryTransport::kMaxOutstanding; ++i) {
    const auto request = irecv(*receiver_, buffer);
    ASSERT_TRUE(request && *request != nullptr) << i;
    requests.push_back(*request);
  }
  const auto one_more = irecv(*receiver_, buffer);
  ASSERT_TRUE(one_more);
  EXPECT_EQ(*one_more, nullptr);

  ASSERT_TRUE(sender_->post_send(std::span(buffer).first(4), 0, nullptr));
  EXPECT_EQ(finish(requests[0]), 4U);
  const auto again = irecv(*receiver_, buffer);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, requests[0]) << "the finished request's slot";
}

TEST_F(NetTest, NoCreditIsNotAnError) {
  connect_pair(new_context());
  transport_->withhold_credit(true);
  std::array<std::byte, 8> buffer{};
  const auto request = sender_->post_send(buffer, 0, nullptr);
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, nullptr);
  EXPECT_TRUE(log_.warnings().empty());
}

TEST_F(NetTest, ConnectRemembersTheAttemptInTheHandle) {
  Context* const context = new_context();
  transport_->delay_ready(2);
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  for (int i = 0; i < 2; ++i) {
    const auto not_yet = net_.connect(context, 0, handle_);
    ASSERT_TRUE(not_yet);
    EXPECT_EQ(*not_yet, nullptr);
    EXPECT_EQ(transport_->live_comms(), 1) << "one attempt, not one per call";
  }
  const auto connected = net_.connect(context, 0, handle_);
  ASSERT_TRUE(connected);
  EXPECT_NE(*connected, nullptr);
  EXPECT_EQ(connect_state(handle_), nullptr);
}

TEST_F(NetTest, FinalizeReapsWhatNcclForgot) {
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

TEST_F(NetTest, AbortWithRequestsInFlight) {
  Context* const context = new_context();
  connect_pair(context);
  std::vector<std::byte> big(1U << 20U);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(sender_->post_send(big, 0, nullptr));
    ASSERT_TRUE(irecv(*receiver_, std::span(big).first(16)));
  }
  net_.close(receiver_);
  net_.close(sender_);
  EXPECT_EQ(transport_->live_comms(), 0);
  net_.finalize(context);
}

TEST_F(NetTest, OneHundredCommunicators) {
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

TEST_F(NetTest, TheTransportSpeaksForADeadConnection) {
  connect_pair(new_context());
  std::array<std::byte, 8> buffer{};
  const auto a = irecv(*receiver_, buffer);
  const auto b = irecv(*receiver_, buffer);
  ASSERT_TRUE(a && b);
  transport_->kill({Errc::kTimedOut, 0, "keepalive"});
  std::size_t size = 0;
  const auto first = (*a)->test({&size, 1});
  const auto second = (*b)->test({&size, 1});
  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(first.error().code, Errc::kTimedOut);
  EXPECT_EQ(second.error().code, Errc::kTimedOut);
  EXPECT_TRUE(log_.warnings().empty());
}

TEST_F(NetTest, ATruncatedMessageFailsItsReceive) {
  connect_pair(new_context());
  std::array<std::byte, 64> big{};
  std::array<std::byte, 16> small{};
  const auto receive = irecv(*receiver_, small);
  ASSERT_TRUE(receive);
  ASSERT_TRUE(sender_->post_send(big, 0, nullptr));
  std::size_t size = 0;
  const auto done = (*receive)->test({&size, 1});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kTruncated);
}

TEST_F(NetTest, AFailingListenTravelsInTheHandle) {
  Context* const context = new_context();
  transport_->fail_listen(Error{Errc::kBusy, 0, "claim"});
  const auto listening = net_.listen(context, 1, handle_);
  ASSERT_TRUE(listening) << "a failing listen would hang the other ranks";
  EXPECT_TRUE(warned(log_, "cannot listen on ztcp1"));
  const auto accepted = net_.accept(*listening);
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().code(), Errc::kBusy);

  const auto connected = net_.connect(context, 0, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kRefused);
  EXPECT_TRUE(warned(log_, "host host-a takes no connections"));
  net_.close(*listening);
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

TEST_F(NetTest, AcceptSaysOnceThatNobodyComes) {
  Context* const context = new_context();
  const auto listening = net_.listen(context, 0, handle_);
  ASSERT_TRUE(listening);
  for (int i = 0; i < 3; ++i) {
    const auto nobody = net_.accept(*listening);
    ASSERT_TRUE(nobody);
    EXPECT_EQ(*nobody, nullptr);
  }
  ASSERT_EQ(log_.warnings().size(), 1U);  // The fixture's patience is 0 ms.
  EXPECT_TRUE(warned(log_, "no peer has connected to ztcp0"));
  EXPECT_TRUE(net_.connect(context, 0, handle_));
  const auto somebody = net_.accept(*listening);
  ASSERT_TRUE(somebody);
  EXPECT_NE(*somebody, nullptr);
}

TEST_F(NetTest, AForeignHandleIsNamedAsSuch) {
  Context* const context = new_context();
  handle_.fill(std::byte{0});
  handle_[0] = std::byte{2};  // AF_INET: NCCL's own Socket or IB.
  handle_[4] = std::byte{10};
  handle_[7] = std::byte{9};
  const auto connected = net_.connect(context, 0, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kProtocol);
  EXPECT_TRUE(warned(log_, "the peer at 10.0.0.9 uses another network"));
}

TEST_F(NetTest, AHandleOfAnUnknownKindIsNotCalledAnotherVersion) {
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  handle_[5] = static_cast<std::byte>(kHandleVersion << 4U | 7);
  const auto connected = net_.connect(context, 0, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kProtocol);
  EXPECT_FALSE(warned(log_, "handle version")) << log_.warned();
  EXPECT_TRUE(warned(log_, "the peer's handle is of kind 7")) << log_.warned();
}

TEST_F(NetTest, ARefusedConnectLeavesNothingBehind) {
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  transport_->delay_ready(1);
  ASSERT_TRUE(net_.connect(context, 0, handle_));
  transport_->kill({Errc::kRefused, 0, "handshake"});
  EXPECT_FALSE(net_.connect(context, 0, handle_));
  EXPECT_EQ(connect_state(handle_), nullptr);
  EXPECT_EQ(transport_->live_comms(), 0);
}

TEST_F(NetTest, MemoryIsRegisteredBesideTraffic) {
  connect_pair(new_context());
  std::array<std::byte, 64> from{};
  std::array<std::byte, 64> to{};
  constexpr int kRounds = 2000;
  std::thread service([&] {
    for (int i = 0; i < kRounds; ++i) {
      const auto send_key = register_memory(*sender_, {from.data(), from.size()});
      const auto receive_key = register_memory(*receiver_, {to.data(), to.size()});
      EXPECT_TRUE(send_key && receive_key);
      EXPECT_TRUE(deregister_memory(*sender_, *send_key));
      EXPECT_TRUE(deregister_memory(*receiver_, *receive_key));
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const auto receive = irecv(*receiver_, to);
    const auto send = sender_->post_send(from, 0, nullptr);
    ASSERT_TRUE(receive && *receive && send && *send);
    EXPECT_EQ(finish(*send), from.size());
    EXPECT_EQ(finish(*receive), from.size());
  }
  service.join();
  EXPECT_EQ(transport_->live_keys(), 0);
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

TEST_F(NetTest, WhatACommunicatorWantsReachesTheTransport) {
  Context* const context = *net_.init_context({.communicator = 77, .traffic_class = 3});
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  EXPECT_EQ(transport_->last_options().communicator, 77U);
  EXPECT_EQ(transport_->last_options().traffic_class, 3);
  ASSERT_TRUE(net_.connect(nullptr, 0, handle_, {.traffic_class = 5}));  // v10 has no context.
  EXPECT_EQ(transport_->last_options().traffic_class, 5);
  ASSERT_TRUE(net_.connect(context, 0, handle_));
  EXPECT_EQ(transport_->last_options().communicator, 77U);
}

TEST_F(NetTest, GpuMemoryWhereThereIsNoneToMoveIsRefusedByName) {
  connect_pair(new_context());
  std::array<std::byte, 64> memory{};
  EXPECT_FALSE(register_memory(
      *sender_, {.address = memory.data(), .size_bytes = 64, .kind = MemoryKind::kCuda}));
  EXPECT_TRUE(warned(log_, "registering 64 bytes of GPU memory at")) << log_.warned();
  EXPECT_TRUE(warned(log_, "GPUDirect RDMA needs an RDMA NIC")) << log_.warned();
}

TEST_F(NetTest, ProcessEndDrainsTheTransport) {
  ASSERT_TRUE(net_.init());
  net_.drain();
  EXPECT_EQ(transport_->drains(), 1);
}

}  // namespace
}  // namespace ztcp::plugin
