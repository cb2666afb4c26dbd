// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Listening, connecting and accepting, and the handle between them.
#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "plugin/channel_tuner.h"
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

// Tables before v11 have no finalize(): attempts that NCCL gave up would never be freed.
TEST_F(ForgottenTest, ForgottenAttemptsAreClosedWhenTheNextBegins) {
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

TEST_F(ForgottenTest, ConnectionsAndAttemptsOfContextsAreNotForgotten) {
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

TEST_F(NetTest, AttemptsStillInUseStay) {
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

TEST_F(NetTest, AcceptWarnsOnceOfAMissingPeer) {
  Context* const context = new_context();
  const auto listening = net_.listen(context, 0, handle_);
  ASSERT_TRUE(listening);
  for (int i = 0; i < 3; ++i) {
    const auto nobody = net_.accept(*listening);
    ASSERT_TRUE(nobody);
    EXPECT_EQ(*nobody, nullptr);
  }
  ASSERT_EQ(log_.warnings().size(), 1U);  // The fixture warns after 0 ms.
  EXPECT_TRUE(warned(log_, "no peer has connected to ztcp0"));
  EXPECT_TRUE(net_.connect(context, 0, handle_));
  const auto somebody = net_.accept(*listening);
  ASSERT_TRUE(somebody);
  EXPECT_NE(*somebody, nullptr);
}

TEST_F(NetTest, AForeignHandleIsReported) {
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

TEST_F(NetTest, AHandleOfAnUnknownKindIsReported) {
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  handle_[5] = static_cast<std::byte>(kHandleVersion << 4U | 7);
  const auto connected = net_.connect(context, 0, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kProtocol);
  EXPECT_FALSE(warned(log_, "handle version")) << log_.warned();
  EXPECT_TRUE(warned(log_, "the peer's handle is of kind 7")) << log_.warned();
}

// The differences of agreement_test.cc, between two ranks.
class AgreementTest : public NetTest {
 protected:
  AgreementTest() {
    tuned_ = TransportKind::kUstack;
    shows_first_twice_ = true;
  }

  // Gets a handle of a peer that differs by `change`, and expects a refusal by name that leaves no
  // object behind.
  template <class Change>
  void expect_refused(std::string_view text, Change&& change) {
    Context* const context = new_context();
    ASSERT_TRUE(net_.listen(context, 0, handle_));
    Issuer issuer = issuer_of(handle_);
    issuer.host = "host-b";
    change(issuer.agreement);
    set_issuer(issuer, handle_);
    const auto connected = net_.connect(context, 0, handle_);
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().code(), Errc::kProtocol);
    EXPECT_TRUE(warned(log_, "connecting from ztcp0 failed: ")) << log_.warned();
    EXPECT_TRUE(warned(log_, text)) << log_.warned();
    EXPECT_EQ(log_.warnings().size(), 1U) << log_.warned();
    EXPECT_EQ(transport_->live_comms(), 0);
  }
};

TEST_F(AgreementTest, AHandleCarriesItsRanksAgreement) {
  devices_[0].max_receives = 8;
  devices_[0].speed_mbps = devices_[1].speed_mbps = 25000;
  channels_per_peer_ = 4;
  EXPECT_FALSE(net_.tuned()) << "nothing has started";
  ASSERT_TRUE(net_.listen(new_context(), 0, handle_));
  const Issuer issuer = issuer_of(handle_);
  EXPECT_EQ(issuer.host, "host-a");
  EXPECT_EQ(issuer.agreement, (Agreement{.tuner = static_cast<std::uint8_t>(TransportKind::kUstack),
                                         .tuner_rule = ChannelTuner::kRule,
                                         .max_receives = 8,
                                         .channels_per_peer = 4,
                                         .nics = 2,
                                         .devices = 3,
                                         .max_message_bytes = std::uint32_t{1} << 30U,
                                         .speed_mbps = 75000}));
}

TEST_F(AgreementTest, RanksThatAgreeConnect) {
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  EXPECT_TRUE(net_.connect(context, 0, handle_)) << log_.warned();
  EXPECT_EQ(log_.warned(), "");
}

TEST_F(AgreementTest, DifferentNumbersOfDevicesAreRefused) {
  expect_refused(
      "the peer (host host-b) shows NCCL 9 devices for 2 NICs, this rank (host host-a) 3 devices "
      "for 2 NICs",
      [](Agreement& peer) { peer.devices = 9; });
}

TEST_F(AgreementTest, APeerWithoutATunerIsRefused) {
  expect_refused("this rank (host host-a) chooses NCCL's channels by size",
                 [](Agreement& peer) { peer.tuner = peer.tuner_rule = 0; });
}

TEST_F(AgreementTest, ADifferentTunerRuleIsRefused) {
  expect_refused("rule 99 of userspace TCP", [](Agreement& peer) { peer.tuner_rule = 99; });
}

TEST_F(AgreementTest, DifferentLimitsAreRefused) {
  expect_refused("allows 1048576 bytes of one message",
                 [](Agreement& peer) { peer.max_message_bytes = 1 << 20; });
}

TEST_F(AgreementTest, OldTablesAreComparedToo) {
  ASSERT_TRUE(net_.init(/*asks_tuner=*/false));
  const auto handle = std::span(handle_).first(kShortHandleBytes);
  ASSERT_TRUE(net_.listen(nullptr, 0, handle));
  EXPECT_TRUE(net_.connect_blocking(0, handle)) << log_.warned();
  Issuer issuer = issuer_of(handle);
  EXPECT_EQ(issuer.agreement.devices, 3);
  issuer.agreement.devices = 9;
  set_issuer(issuer, handle);
  EXPECT_FALSE(net_.connect_blocking(0, handle));
  EXPECT_TRUE(warned(log_, "the peer shows NCCL 9 devices")) << log_.warned();
}

// A rank of the host that counts more devices makes this one listen on them.
TEST_F(NetTest, AListenOnAMissingDevicePoisonsItsHandle) {
  Context* const context = new_context();
  for (const int device : {2, -1, 1 << 20}) {
    std::array<std::byte, kHandleBytes> handle{};
    const auto listening = net_.listen(context, device, handle);
    ASSERT_TRUE(listening) << "a failing listen would hang the other ranks";
    const auto accepted = net_.accept(*listening);
    ASSERT_FALSE(accepted);
    EXPECT_EQ(accepted.error().code(), Errc::kNoDevice);
    const auto connected = net_.connect(context, 0, handle);
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().code(), Errc::kRefused);
    net_.close(*listening);
  }
  EXPECT_TRUE(warned(log_,
                     "accepting on NCCL device 2 failed: NCCL named device 2, and this rank "
                     "shows 2"))
      << log_.warned();
  EXPECT_TRUE(warned(log_,
                     "host host-a listens on NCCL device 2, which it does not show (it shows "
                     "2): its nccl_devices differs"))
      << log_.warned();
  EXPECT_TRUE(warned(log_, "listens on NCCL device -1")) << log_.warned();
}

TEST_F(NetTest, AConnectFromAMissingDeviceExplainsItself) {
  Context* const context = new_context();
  ASSERT_TRUE(net_.listen(context, 0, handle_));
  const auto connected = net_.connect(context, 7, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kInvalidArgument);
  EXPECT_TRUE(warned(log_, "NCCL named device 7, and this rank shows 2")) << log_.warned();
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
