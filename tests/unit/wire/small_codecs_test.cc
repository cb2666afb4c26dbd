// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ARP, ICMP and the TCP header alone.
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "transport/wire/arp.h"
#include "transport/wire/icmp.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::wire {
namespace {

TEST(Arp, RoundTripAndRefusals) {
  const ArpPacket in{ArpOperation::kReply, MacAddress{{1, 2, 3, 4, 5, 6}}, Ipv4Address{0x0a000001},
                     MacAddress{{6, 5, 4, 3, 2, 1}}, Ipv4Address{0x0a000002}};
  std::vector<std::byte> raw(kArpBytes);
  ASSERT_EQ(emit_arp(in, raw.data()), kArpBytes);
  const auto out = parse_arp(raw);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->operation, in.operation);
  EXPECT_EQ(out->sender_mac, in.sender_mac);
  EXPECT_EQ(out->sender_ip, in.sender_ip);
  EXPECT_EQ(out->target_mac, in.target_mac);
  EXPECT_EQ(out->target_ip, in.target_ip);
  EXPECT_FALSE(parse_arp(std::span(raw).first(kArpBytes - 1)));
  for (const std::size_t at : {1U, 2U, 4U, 5U, 7U}) {
    auto bad = raw;
    bad[at] = std::byte{9};
    EXPECT_FALSE(parse_arp(bad)) << at;
  }
}

TEST(Icmp, EchoRequestBecomesReply) {
  std::vector<std::byte> message{std::byte{8}, std::byte{0}, std::byte{0}, std::byte{0},
                                 std::byte{0}, std::byte{7}, std::byte{0}, std::byte{9},
                                 std::byte{1}, std::byte{2}, std::byte{3}};
  store_be16(message.data() + 2, internet_checksum(message));
  const auto request = parse_icmp_echo(message);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->is_request);
  make_echo_reply(message);
  const auto reply = parse_icmp_echo(message);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->is_request);
  EXPECT_EQ(reply->identifier, 7);
  EXPECT_EQ(reply->sequence, 9);
  EXPECT_EQ(message[10], std::byte{3});
}

TEST(Icmp, UnreachableQuotesTheSegment) {
  const IcmpError in{IcmpError::kUnreachable,
                     IcmpError::kFragmentationNeeded,
                     1400,
                     Endpoint{Ipv4Address{0x0a000001}, 40000},
                     Endpoint{Ipv4Address{0x0a000002}, 7471},
                     0xdeadbeef};
  std::vector<std::byte> raw(kEmittedIcmpErrorBytes);
  ASSERT_EQ(emit_icmp_error(in, raw.data()), kEmittedIcmpErrorBytes);
  const auto out = parse_icmp_error(raw);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->type, in.type);
  EXPECT_EQ(out->code, in.code);
  EXPECT_EQ(out->next_hop_mtu_bytes, 1400);
  EXPECT_EQ(out->source, in.source);
  EXPECT_EQ(out->destination, in.destination);
  EXPECT_EQ(out->sequence, in.sequence);
  for (std::size_t size = 0; size < raw.size(); ++size)
    EXPECT_FALSE(parse_icmp_error(std::span(raw).first(size)));
  raw[0] = std::byte{4};  // Source quench: RFC 9293 MUST-55.
  EXPECT_FALSE(parse_icmp_error(raw));
}

TEST(TcpHeader, RoundTrip) {
  TcpHeader in;
  in.source_port = 1;
  in.destination_port = 65535;
  in.sequence = 0x80000000;
  in.acknowledgment = 0xffffffff;
  in.window = 0xfffe;
  in.flags = kSyn | kAck | kEce;
  in.options.mss_bytes = 1460;
  in.options.sack_permitted = true;
  std::array<std::byte, kMaxTcpBytes> raw;
  const std::size_t size = emit_tcp(in, raw.data());
  TcpHeader out;
  ASSERT_TRUE(parse_tcp(std::span(raw).first(size), out));
  EXPECT_EQ(out.header_bytes, size);
  EXPECT_EQ(out.source_port, in.source_port);
  EXPECT_EQ(out.destination_port, in.destination_port);
  EXPECT_EQ(out.sequence, in.sequence);
  EXPECT_EQ(out.acknowledgment, in.acknowledgment);
  EXPECT_EQ(out.window, in.window);
  EXPECT_EQ(out.flags, in.flags);
  EXPECT_EQ(out.options.mss_bytes, 1460);
  EXPECT_TRUE(out.options.sack_permitted);
  EXPECT_FALSE(parse_tcp(std::span(raw).first(size - 1), out));
  raw[12] = std::byte{0x40};  // A data offset of 16 bytes.
  EXPECT_FALSE(parse_tcp(raw, out));
}

}  // namespace
}  // namespace ztcp::wire
