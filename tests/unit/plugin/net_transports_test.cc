// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Several transports behind one Net.

#include <gtest/gtest.h>

#include "plugin/net.h"
#include "tests/unit/plugin/net_fixture.h"

namespace ztcp::plugin {
namespace {

// The devices of two transports, one after the other, each with its own numbers.
class TwoTransports : public NetTest {
 protected:
  TwoTransports() {
    other_devices_.resize(2);
    other_devices_[0].name = "rdma0";
    other_devices_[1].name = "rdma1";
  }
};

TEST_F(TwoTransports, AListenGoesToTheDevicesTransportByItsOwnNumber) {
  ASSERT_TRUE(net_.init());
  EXPECT_EQ(net_.device_count().value(), 4);
  ASSERT_TRUE(net_.listen(nullptr, 3, handle_));
  EXPECT_EQ(other_->last_device(), 1);
  EXPECT_EQ(transport_->last_device(), -1);
  EXPECT_EQ(std::get<PeerHandle>(decode_handle(handle_)).kind, TransportKind::kVerbs);
}

TEST_F(TwoTransports, BothConnectSideBySide) {
  Context* const context = new_context();
  connect_pair(context);
  std::array<std::byte, kHandleBytes> handle{};
  const auto listening = net_.listen(context, 2, handle);
  ASSERT_TRUE(listening);
  const auto sender = net_.connect(context, 3, handle);
  const auto receiver = net_.accept(*listening);
  EXPECT_TRUE(sender && *sender && receiver && *receiver);
  EXPECT_EQ(transport_->live_comms(), 2);
  EXPECT_EQ(other_->live_comms(), 2);
  net_.finalize(context);
  EXPECT_EQ(other_->live_comms(), 0);
}

TEST_F(TwoTransports, ADeviceAndAHandleOfDifferentTransportsAreReported) {
  ASSERT_TRUE(net_.init());
  ASSERT_TRUE(net_.listen(nullptr, 2, handle_));
  const auto connected = net_.connect(nullptr, 1, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kProtocol);
  EXPECT_TRUE(warned(log_,
                     "connecting from ztcp1 failed: it carries userspace TCP, the peer "
                     "listens with RDMA verbs or merged NICs; NCCL pairs"))
      << log_.warned();
  EXPECT_TRUE(warned(log_, "NICs of the same drivers in the same order")) << log_.warned();
}

// A host with a kernel NIC in a job of hosts with kernel bypass.
TEST_F(NetTest, TcpReachesTcpOverAnyTransport) {
  ASSERT_TRUE(net_.init());
  const auto listening = net_.listen(nullptr, 0, handle_);
  ASSERT_TRUE(listening);
  auto peer = std::get<PeerHandle>(decode_handle(handle_));
  const Issuer issuer = issuer_of(handle_);
  peer.kind = TransportKind::kSockets;
  encode_handle(peer, handle_);
  set_issuer(issuer, handle_);
  const auto sender = net_.connect(nullptr, 1, handle_);
  const auto receiver = net_.accept(*listening);
  EXPECT_TRUE(sender && *sender && receiver && *receiver);
}

TEST_F(NetTest, AKindWithoutANicOnThisHostIsReported) {
  ASSERT_TRUE(net_.init());
  encode_handle(PeerHandle{.kind = TransportKind::kVerbs}, handle_);
  const auto connected = net_.connect(nullptr, 0, handle_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Errc::kProtocol);
  EXPECT_TRUE(
      warned(log_, "listens with RDMA verbs or merged NICs, which no NIC of this host carries"))
      << log_.warned();
}

}  // namespace
}  // namespace ztcp::plugin
