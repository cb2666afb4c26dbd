// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Frame dispatch (stack_input.cc, stack_icmp.cc).
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/tcp/stack.h"
#include "transport/wire/arp.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ipv4.h"

namespace ztcp::tcp::test {
namespace {

TEST(Icmp, EchoIsAnswered) {
  Peer peer;
  Bytes bytes(wire::kEthernetBytes + wire::kIpv4Bytes + 100);
  std::size_t at = wire::emit_ethernet({.destination = kOurMac, .source = kPeerMac}, bytes.data());
  wire::Ipv4Header ip;
  ip.source = kPeerIp;
  ip.destination = kOurIp;
  ip.protocol = wire::IpProtocol::kIcmp;
  ip.total_bytes = wire::kIpv4Bytes + 100;
  at += wire::emit_ipv4(ip, bytes.data() + at);
  bytes[at] = std::byte{8};
  bytes[at + 50] = std::byte{42};
  wire::store_be16(bytes.data() + at + 2, wire::internet_checksum(std::span(bytes).subspan(at)));
  RxFrame frame;
  frame.head = bytes;
  peer.stack.on_frames(peer.now, std::span(&frame, 1));
  std::vector<TxFrame> out(4);
  ASSERT_EQ(peer.stack.collect(peer.now, out), 1U);
  ASSERT_EQ(out[0].fragment_count, 1);
  const std::span reply(out[0].fragments[0].data, out[0].fragments[0].size_bytes);
  EXPECT_EQ(reply.size(), 100U);
  EXPECT_EQ(reply[0], std::byte{0});
  EXPECT_EQ(reply[50], std::byte{42});
  EXPECT_EQ(wire::internet_checksum(reply), 0);
}

TEST(Arp, RequestForUsIsAnswered) {
  Peer peer;
  Bytes bytes(wire::kEthernetBytes + wire::kArpBytes);
  wire::emit_ethernet({.destination = kBroadcastMac,
                       .source = kPeerMac,
                       .vlan_id = 0,
                       .type = wire::EtherType::kArp},
                      bytes.data());
  wire::emit_arp({.operation = wire::ArpOperation::kRequest,
                  .sender_mac = kPeerMac,
                  .sender_ip = kPeerIp,
                  .target_mac = {},
                  .target_ip = kOurIp},
                 bytes.data() + wire::kEthernetBytes);
  RxFrame frame;
  frame.head = bytes;
  peer.stack.on_frames(peer.now, std::span(&frame, 1));
  std::vector<TxFrame> out(4);
  ASSERT_EQ(peer.stack.collect(peer.now, out), 1U);
  const auto reply = wire::parse_arp(
      std::span<const std::byte>(out[0].header).first(out[0].header_bytes).subspan(14));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->operation, wire::ArpOperation::kReply);
  EXPECT_EQ(reply->sender_mac, kOurMac);
  EXPECT_EQ(reply->target_mac, kPeerMac);
}

// A switch floods frames to MACs it has not learnt yet, and a port may be promiscuous.
TEST(Ethernet, FramesToOtherMacsAreIgnored) {
  constexpr MacAddress kOther{{2, 0, 0, 0, 0, 0x55}};
  Stack stack(test_config(), {1, 2});
  std::vector<TxFrame> out(8);
  stack.collect(at(0s), out);  // The announcement.
  const auto arrives = [&](Bytes bytes, const MacAddress& to) {
    std::memcpy(bytes.data(), to.bytes.data(), to.bytes.size());
    RxFrame frame;
    frame.head = bytes;
    stack.on_frames(at(0s), std::span(&frame, 1));
    return stack.collect(at(0s), out);
  };
  const Bytes syn = frame_from_peer({.flags = wire::kSyn}, 80, 5000)->bytes;
  EXPECT_EQ(arrives(syn, kOther), 0U) << "its receiver may listen there";
  EXPECT_EQ(arrives(syn, kBroadcastMac), 0U) << "TCP has one receiver";
  EXPECT_EQ(stack.counters().rx_not_for_us, 2U);
  EXPECT_EQ(arrives(syn, kOurMac), 1U) << "refused";

  Bytes arp(wire::kEthernetBytes + wire::kArpBytes);
  wire::emit_ethernet({kOurMac, kPeerMac, 0, wire::EtherType::kArp}, arp.data());
  wire::emit_arp({wire::ArpOperation::kRequest, kPeerMac, kPeerIp, {}, kOurIp},
                 arp.data() + wire::kEthernetBytes);
  EXPECT_EQ(arrives(arp, kOther), 0U);
  EXPECT_EQ(arrives(arp, kBroadcastMac), 1U);
  EXPECT_EQ(arrives(arp, kOurMac), 1U);
  EXPECT_EQ(stack.counters().rx_not_for_us, 3U);
}

TEST(Vlan, TagIsSentAndRequired) {
  StackConfig config = test_config();
  config.vlan_id = 100;
  Stack stack(config, {1, 2});
  std::vector<TxFrame> out(8);
  ASSERT_EQ(stack.collect(at(0s), out), 1U);
  EXPECT_EQ(out[0].l2_bytes, 18);
  EXPECT_EQ(wire::load_be16(out[0].header.data() + 12), 0x8100);
  EXPECT_EQ(wire::load_be16(out[0].header.data() + 14), 100);
  auto untagged = frame_from_peer({.flags = wire::kSyn}, 80, 5000);
  stack.on_frames(at(0s), std::span(&untagged->view, 1));
  EXPECT_EQ(stack.counters().rx_not_for_us, 1U);
  EXPECT_EQ(stack.collect(at(0s), out), 0U);
}

}  // namespace
}  // namespace ztcp::tcp::test
