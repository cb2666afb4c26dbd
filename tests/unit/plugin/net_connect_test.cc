// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Listening, connecting and accepting, and the handle between them.
#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "plugin/net.h"
#include "tests/unit/plugin/net_fixture.h"

namespace ztcp::plugin {
namespace {

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

class ForgottenTest : public NetTest {
 protected:
  ForgottenTest() : NetTest(std::chrono::milliseconds(0)) {}
};

// Tables before v11 have no finalize(): what NCCL gave up would stay for good.
TEST_F(ForgottenTest, AttemptsAreClosedAsTheNextBegins) {
  ASSERT_TRUE(net_.init());
  transport_->delay_ready(100);
  ASSERT_TRUE(net_.listen(nullptr, 0, handle_));
  auto first = handle_;
  auto second = handle_;
  ASSERT_TRUE(net_.connect(nullptr, 0, first));
  ASSERT_TRUE(net_.connect(nullptr, 0, second));
  EXPECT_EQ(transport_->live_comms(), 1);
  const auto again = net_.connect(nullptr, 0, first);
  ASSERT_TRUE(again) << "one that comes back begins anew";
  EXPECT_EQ(*again, nullptr);
  EXPECT_EQ(transport_->live_comms(), 1);
}

TEST_F(ForgottenTest, ConnectionsAndAttemptsOfContextsAreNot) {
  ASSERT_TRUE(net_.init());
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(nullptr, 0, handle_));
  auto connected = handle_;
  auto attempt = handle_;
  auto next = handle_;
  ASSERT_TRUE(net_.connect(nullptr, 0, connected));
  transport_->delay_ready(100);
  ASSERT_TRUE(net_.connect(context, 0, attempt));
  ASSERT_TRUE(net_.connect(nullptr, 0, next));
  EXPECT_EQ(transport_->live_comms(), 3);
  net_.finalize(context);
  EXPECT_EQ(transport_->live_comms(), 2);
}

TEST_F(NetTest, AttemptsThatNcclMayStillAskForStay) {
  ASSERT_TRUE(net_.init());
  transport_->delay_ready(100);
  ASSERT_TRUE(net_.listen(nullptr, 0, handle_));
  auto first = handle_;
  auto second = handle_;
  ASSERT_TRUE(net_.connect(nullptr, 0, first));
  ASSERT_TRUE(net_.connect(nullptr, 0, second));
  EXPECT_EQ(transport_->live_comms(), 2);
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

// Ranks that cut a collective differently would wait for each other without end.
TEST_F(NetTest, HostsOfWhichOneTunesRefuseEachOther) {
  EXPECT_FALSE(net_.tuned()) << "nothing has started";
  tuned_ = TransportKind::kUstack;
  Context* const context = new_context();
  EXPECT_EQ(net_.tuned(), TransportKind::kUstack);
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  EXPECT_TRUE(net_.connect(context, 0, handle_)) << log_.warned();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  handle_[5] &= ~std::byte{8};
  const auto connected = net_.connect(context, 0, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kProtocol);
  EXPECT_TRUE(warned(log_,
                     "this host chooses NCCL's channels by size, the peer leaves them to "
                     "NCCL"))
      << log_.warned();
  EXPECT_TRUE(warned(log_, "export ZTCP_TUNER=off on all hosts"));
}

TEST_F(NetTest, AHostThatDoesNotTuneRefusesOneThatDoes) {
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  handle_[5] |= std::byte{8};
  EXPECT_FALSE(net_.connect(context, 0, handle_));
  EXPECT_TRUE(warned(log_, "the peer chooses NCCL's channels by size, this host leaves"))
      << log_.warned();
}

// Sockets and the userspace TCP reach each other, and each has a rule of its own.
TEST_F(NetTest, HostsThatTuneByOtherRulesRefuseEachOther) {
  tuned_ = TransportKind::kUstack;
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  handle_[5] = (handle_[5] & ~std::byte{7}) | static_cast<std::byte>(TransportKind::kSockets);
  EXPECT_FALSE(net_.connect(context, 0, handle_));
  EXPECT_TRUE(warned(log_,
                     "this host chooses NCCL's channels by size, the peer does so by another "
                     "rule"))
      << log_.warned();
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

}  // namespace
}  // namespace ztcp::plugin
