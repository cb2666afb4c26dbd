// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Packets with impossible source addresses (RFC 9293 MUST-63, RFC 1122 section 3.2.1.3).
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"

namespace ztcp::tcp::test {
namespace {

// The packet as if `source` had sent it.
void rename(Bytes& bytes, Ipv4Address source) {
  std::byte* ip = bytes.data() + kIpAt;
  wire::store_be32(ip + 12, source.value);
  wire::store_be16(ip + 10, 0);
  wire::store_be16(ip + 10, wire::internet_checksum({ip, wire::kIpv4Bytes}));
  if (wire::load_u8(ip + 9) != 6) return;
  const std::span tcp = std::span(bytes).subspan(kIpAt + wire::kIpv4Bytes);
  wire::store_be16(tcp.data() + wire::kTcpChecksumOffset, 0);
  wire::Checksum sum =
      wire::pseudo_header_checksum(source, kOurIp, static_cast<std::uint32_t>(tcp.size()));
  sum.add(tcp);
  wire::store_be16(tcp.data() + wire::kTcpChecksumOffset, sum.finish());
}

Bytes ping_without_data() {
  Bytes bytes(kIpAt + wire::kIpv4Bytes + 8);
  wire::emit_ethernet({.destination = kOurMac, .source = kPeerMac}, bytes.data());
  wire::emit_ipv4({.source = kPeerIp,
                   .destination = kOurIp,
                   .protocol = wire::IpProtocol::kIcmp,
                   .total_bytes = wire::kIpv4Bytes + 8},
                  bytes.data() + kIpAt);
  std::byte* icmp = bytes.data() + kIpAt + wire::kIpv4Bytes;
  wire::store_u8(icmp, 8);
  wire::store_be16(icmp + 2, wire::internet_checksum({icmp, 8}));
  return bytes;
}

class Source : public testing::TestWithParam<const char*> {
 protected:
  Source() {
    std::vector<TxFrame> out(4);
    stack.collect(at(0s), out);  // The announcement.
    EXPECT_TRUE(stack.listen(kListenPort, user));
  }
  // Number of frames that answer it; an ARP request for the answer counts.
  std::size_t answers(Bytes bytes) {
    RxFrame frame;
    frame.head = bytes;
    stack.on_frames(at(1ms), std::span(&frame, 1));
    std::vector<TxFrame> out(4);
    return stack.collect(at(1ms), out);
  }
  User user;
  Stack stack{test_config(), {1, 2}};
};

TEST_P(Source, IsNotAnswered) {
  const Ipv4Address source = *parse_ipv4(GetParam());
  const auto packet = [&](wire::TcpFlags flags, std::uint16_t port) {
    Bytes bytes = frame_from_peer({.flags = flags, .seq = 1, .ack = 7}, port, 5000)->bytes;
    rename(bytes, source);
    return bytes;
  };
  EXPECT_EQ(answers(packet(wire::kSyn, kListenPort)), 0U);
  EXPECT_EQ(answers(packet(wire::kAck, kListenPort)), 0U);
  EXPECT_EQ(answers(packet(wire::kSyn, 80)), 0U);
  Bytes echo = ping_without_data();
  rename(echo, source);
  EXPECT_EQ(answers(echo), 0U);
  EXPECT_EQ(stack.counters().rx_not_for_us, 4U);
  EXPECT_EQ(stack.counters().connections_opened + stack.connections(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Nobody, Source,
                         testing::Values("0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1",
                                         "239.1.2.3", "240.0.0.1", "255.255.255.255", "10.0.0.0",
                                         "10.0.0.255", "10.0.0.1"));

using Destination = Source;

// MUST-46.
TEST_F(Destination, AConnectNeedsAHostAddress) {
  for (const char* text : {"224.0.0.1", "255.255.255.255", "10.0.0.255", "127.0.0.1", "0.0.0.0"})
    EXPECT_FALSE(stack.connect(at(0s), {*parse_ipv4(text), 80}, user)) << text;
}

// The unmodified packet is answered, so that the tests above test the source.
TEST_F(Destination, AValidPacketIsAnswered) {
  EXPECT_EQ(answers(frame_from_peer({.flags = wire::kSyn}, kListenPort, 5000)->bytes), 1U);
  EXPECT_EQ(answers(ping_without_data()), 1U);
}

}  // namespace
}  // namespace ztcp::tcp::test
