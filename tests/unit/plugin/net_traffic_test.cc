// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Messages over a connection, and registration of their memory.
#include <array>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plugin/memory.h"
#include "plugin/net.h"
#include "tests/unit/plugin/net_fixture.h"

namespace ztcp::plugin {
namespace {

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

TEST_F(NetTest, ThirtyTwoRequestsAreTheLimit) {
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

TEST_F(NetTest, CloseWithRequestsInFlightIsSafe) {
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

TEST_F(NetTest, ADeadConnectionIsLoggedByTheTransportOnly) {
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

TEST_F(NetTest, UnsupportedGpuMemoryIsRefusedByName) {
  connect_pair(new_context());
  std::array<std::byte, 64> memory{};
  EXPECT_FALSE(register_memory(
      *sender_, {.address = memory.data(), .size_bytes = 64, .kind = MemoryKind::kCuda}));
  EXPECT_TRUE(warned(log_, "registering 64 bytes of GPU memory at")) << log_.warned();
  EXPECT_TRUE(warned(log_, "GPUDirect RDMA needs an RDMA NIC")) << log_.warned();
}

}  // namespace
}  // namespace ztcp::plugin
