// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DSCP and VLAN priority of the packets that a stack sends.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ipv4.h"

namespace ztcp::tcp::test {
namespace {

constexpr std::uint8_t kExpedited = 46;

StackConfig marked_config(std::uint8_t dscp) {
  StackConfig config = test_config();
  config.dscp = dscp;
  return config;
}

// The second byte of the IP header.
unsigned class_of(const TxFrame& frame) {
  return wire::load_u8(frame.header.data() + frame.l2_bytes + 1);
}

unsigned tag_of(const TxFrame& frame) { return wire::load_be16(frame.header.data() + 14); }

// Collects, and expects `count` packets with that DSCP and no ECN.
void expect_packets(Peer& peer, std::size_t count, std::uint8_t dscp) {
  peer.collect();  // Checks checksums.
  ASSERT_EQ(peer.raw.size(), count);
  for (const TxFrame& frame : peer.raw) EXPECT_EQ(class_of(frame), unsigned{dscp} << 2);
}

TEST(Dscp, IsZeroByDefault) {
  Peer peer;
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user));
  expect_packets(peer, 1, 0);
}

TEST(Dscp, IsOnEveryPacketOfAConnection) {
  Peer peer(marked_config(kExpedited));
  peer.user.stream = *peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
  expect_packets(peer, 1, kExpedited);  // SYN

  Peer open(marked_config(kExpedited));
  open.open();
  open.write(3000);
  expect_packets(open, 3, kExpedited);
  open.send_data(100, open.first());
  expect_packets(open, 1, kExpedited);  // ACK
  open.send(
      {.seq = open.peer_nxt() + 1000, .ack = open.first(), .payload = Bytes(100, std::byte{1})});
  expect_packets(open, 1, kExpedited);  // SACK
  open.user.stream->abort();
  expect_packets(open, 1, kExpedited);  // RST
}

TEST(Dscp, IsOnTheAnswersToPeers) {
  Peer peer(marked_config(kExpedited));
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  expect_packets(peer, 1, kExpedited);  // SYN-ACK
  peer.our_port = kListenPort + 1;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  expect_packets(peer, 1, kExpedited);  // RST: nobody listens.
}

TEST(Dscp, OfAConnectionIsInItsFirstPacket) {
  Peer peer(marked_config(8));
  const auto stream = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
  ASSERT_TRUE(stream);
  (*stream)->set_dscp(kExpedited);
  expect_packets(peer, 1, kExpedited);
  const auto second = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
  ASSERT_TRUE(second);
  expect_packets(peer, 1, 8);
}

TEST(Dscp, OfAnEstablishedConnectionCanChange) {
  Peer peer(marked_config(8));
  peer.open_passive();
  peer.user.stream->set_dscp(kExpedited);
  peer.write(1000);
  expect_packets(peer, 1, kExpedited);
  peer.user.stream->set_dscp(0);
  peer.send_data(100, peer.first());
  expect_packets(peer, 1, 0);
}

TEST(Dscp, OfAnEarlierConnectionIsForgotten) {
  Peer peer;
  peer.open();
  peer.user.stream->set_dscp(kExpedited);
  peer.user.stream->abort();
  expect_packets(peer, 1, kExpedited);
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user));
  expect_packets(peer, 1, 0);
}

TEST(Dscp, IsLeftToTheNicsChecksum) {
  StackConfig config = marked_config(kExpedited);
  config.tx_checksum_offload = true;
  Stack stack(config, {1, 2});
  User user;
  std::vector<TxFrame> out(8);
  stack.collect(at(0s), out);  // The announcement.
  ASSERT_TRUE(stack.connect(at(0s), {kOurIp, 80}, user));
  ASSERT_EQ(stack.collect(at(0s), out), 1U);
  EXPECT_EQ(class_of(out[0]), unsigned{kExpedited} << 2);
}

TEST(Dscp, OfAnEchoReplyIsTheRequests) {
  Peer peer(marked_config(8));
  peer.collect();
  Bytes bytes(kIpAt + wire::kIpv4Bytes + 8);
  wire::emit_ethernet({.destination = kOurMac, .source = kPeerMac}, bytes.data());
  wire::emit_ipv4({.source = kPeerIp,
                   .destination = kOurIp,
                   .protocol = wire::IpProtocol::kIcmp,
                   .dscp = kExpedited,
                   .total_bytes = wire::kIpv4Bytes + 8},
                  bytes.data() + kIpAt);
  const std::span message = std::span(bytes).subspan(kIpAt + wire::kIpv4Bytes);
  message[0] = std::byte{8};
  wire::store_be16(message.data() + 2, wire::internet_checksum(message));
  RxFrame frame;
  frame.head = bytes;
  peer.stack.on_frames(peer.now, std::span(&frame, 1));
  std::vector<TxFrame> out(4);
  ASSERT_EQ(peer.stack.collect(peer.now, out), 1U);
  EXPECT_EQ(class_of(out[0]), unsigned{kExpedited} << 2);
}

TEST(VlanPriority, FollowsTheDscpOfEachPacket) {
  StackConfig config = marked_config(kExpedited);
  config.vlan_id = 100;
  Stack stack(config, {1, 2});
  User user;
  std::vector<TxFrame> out(8);
  ASSERT_EQ(stack.collect(at(0s), out), 1U);
  EXPECT_EQ(tag_of(out[0]), 5U << 13 | 100U) << "ARP";
  const auto stream = stack.connect(at(0s), {kOurIp, 80}, user);
  ASSERT_TRUE(stream);
  (*stream)->set_dscp(26);
  ASSERT_EQ(stack.collect(at(0s), out), 1U);
  EXPECT_EQ(tag_of(out[0]), 3U << 13 | 100U);
}

TEST(VlanPriority, GivenOneIsInEveryFrame) {
  StackConfig config = marked_config(kExpedited);
  config.vlan_id = 4094;
  config.vlan_priority = 0;
  Stack stack(config, {1, 2});
  std::vector<TxFrame> out(8);
  ASSERT_EQ(stack.collect(at(0s), out), 1U);
  EXPECT_EQ(tag_of(out[0]), 4094U);
}

}  // namespace
}  // namespace ztcp::tcp::test
