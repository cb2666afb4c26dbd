// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// IPv6 frames: the header, extension headers, and checksums.
#include "transport/wire/ipv6.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "transport/wire/checksum.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::wire {
namespace {

using Bytes = std::vector<std::byte>;

constexpr IpAddress kSource{0xfd00'0000'0000'0001, 0x1234'5678'9abc'def0};
constexpr IpAddress kDestination{0xfd00'0000'0000'0002, 7};
constexpr std::size_t kIpAt = kEthernetBytes;

Bytes bytes_of(const std::vector<int>& values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// A TCP frame with a good checksum. `extensions` lie between IP and TCP, the first of which has the
// number `next`; the last one's next header is set to TCP.
Bytes ipv6_frame(std::size_t payload_bytes, const Bytes& extensions = {}, int next = 6) {
  Bytes frame(kIpAt + kIpv6Bytes);
  emit_ethernet({{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}, 0, EtherType::kIpv6}, frame.data());
  frame.insert(frame.end(), extensions.begin(), extensions.end());
  TcpHeader tcp;
  tcp.source_port = 40000;
  tcp.destination_port = 7471;
  tcp.sequence = 0xfffffff0;
  tcp.flags = kAck;
  tcp.options.timestamps = Timestamps{5, 6};
  const std::size_t l4 = frame.size();
  frame.resize(l4 + kMaxTcpBytes);
  frame.resize(l4 + emit_tcp(tcp, frame.data() + l4));
  for (std::size_t i = 0; i < payload_bytes; ++i) frame.push_back(std::byte(i * 7));
  emit_ipv6({.source = kSource,
             .destination = kDestination,
             .protocol = IpProtocol{static_cast<std::uint8_t>(next)},
             .ecn = Ecn::kEct0,
             .dscp = 46,
             .hop_limit = 63,
             .flow_label = 0xabcde,
             .payload_bytes = static_cast<std::uint16_t>(frame.size() - kIpAt - kIpv6Bytes)},
            frame.data() + kIpAt);
  Checksum sum =
      pseudo_header_checksum(kSource, kDestination, static_cast<std::uint32_t>(frame.size() - l4));
  sum.add(std::span(frame).subspan(l4));
  store_be16(frame.data() + l4 + kTcpChecksumOffset, sum.finish());
  return frame;
}

RxFrame received(std::span<const std::byte> bytes) {
  RxFrame frame;
  frame.head = bytes;
  return frame;
}
FrameKind kind_of(const Bytes& bytes) { return parse_frame(received(bytes)).kind; }

TEST(Ipv6, ReadsEveryField) {
  const Bytes bytes = ipv6_frame(100);
  const ParsedFrame parsed = parse_frame(received(bytes));
  ASSERT_EQ(parsed.kind, FrameKind::kTcp);
  EXPECT_TRUE(parsed.is_ipv6());
  EXPECT_EQ(parsed.ip.source, kSource);
  EXPECT_EQ(parsed.ip.destination, kDestination);
  EXPECT_EQ(parsed.ip.ecn, Ecn::kEct0);
  EXPECT_EQ(parsed.ip.dscp, 46);
  EXPECT_EQ(parsed.ip.hop_limit, 63);
  EXPECT_EQ(parsed.ip.header_bytes, kIpv6Bytes);
  EXPECT_EQ(parsed.ip.total_bytes, bytes.size() - kIpAt);
  EXPECT_EQ(parsed.tcp.sequence, 0xfffffff0U);
  EXPECT_EQ(parsed.payload_bytes, 100U);
  EXPECT_EQ(parsed.payload_offset, bytes.size() - 100);
  EXPECT_TRUE(verify_checksums(received(bytes), parsed));
}

TEST(Ipv6, WritesTheHeaderOfTheRfc) {
  const Bytes bytes = ipv6_frame(0);
  // Version 6, DSCP 46, ECT(0), label, length, TCP, 63 hops.
  EXPECT_TRUE(std::equal(bytes.begin() + kIpAt, bytes.begin() + kIpAt + 8,
                         bytes_of({0x6b, 0xaa, 0xbc, 0xde, 0, 32, 6, 63}).begin()));
}

TEST(Ipv6, AcceptsOnlyWholeHeaders) {
  const Bytes bytes = ipv6_frame(0);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(parse_frame(received(std::span(bytes).first(size))).kind, FrameKind::kMalformed)
        << size;
}

TEST(Ipv6, EthernetPaddingIsNotPayload) {
  Bytes bytes = ipv6_frame(1);
  bytes.resize(bytes.size() + 30, std::byte{0xee});
  const ParsedFrame parsed = parse_frame(received(bytes));
  EXPECT_EQ(parsed.payload_bytes, 1U);
  EXPECT_TRUE(verify_checksums(received(bytes), parsed));
}

// The version and class, length and hop limit aside, which the checksum does not cover.
TEST(Ipv6, EveryDamagedBitOfAddressesAndTcpIsSeen) {
  const Bytes good = ipv6_frame(33);
  for (std::size_t bit = (kIpAt + 8) * 8; bit < good.size() * 8; ++bit) {
    Bytes bytes = good;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const ParsedFrame parsed = parse_frame(received(bytes));
    if (parsed.kind != FrameKind::kTcp) continue;
    EXPECT_FALSE(verify_checksums(received(bytes), parsed)) << bit;
  }
}

TEST(Ipv6, RefusesIpv4AddressesAndOtherVersions) {
  for (const std::size_t at : {std::size_t{8}, std::size_t{24}}) {
    Bytes bytes = ipv6_frame(0);
    store_ipv6_address(bytes.data() + kIpAt + at, Ipv4Address{0x0a000001});
    EXPECT_EQ(kind_of(bytes), FrameKind::kMalformed);
  }
  Bytes bytes = ipv6_frame(0);
  bytes[kIpAt] = std::byte{0x45};
  EXPECT_EQ(kind_of(bytes), FrameKind::kMalformed);
}

TEST(Ipv6, ForeignProtocolsAreForeign) {
  for (const int next : {17, 50, 51, 59, 1}) {
    Bytes bytes = ipv6_frame(0);
    bytes[kIpAt + 6] = static_cast<std::byte>(next);
    EXPECT_EQ(kind_of(bytes), FrameKind::kForeign) << next;
  }
  Bytes bytes = ipv6_frame(0);
  bytes[kIpAt + 6] = std::byte{58};
  EXPECT_EQ(kind_of(bytes), FrameKind::kIcmpv6);
}

struct Chain {
  const char* name;
  int next;
  std::vector<int> bytes;
  bool is_skipped;
};

class ExtensionHeaders : public testing::TestWithParam<Chain> {};

TEST_P(ExtensionHeaders, AreSkippedOrRefused) {
  const Chain& chain = GetParam();
  const Bytes bytes = ipv6_frame(10, bytes_of(chain.bytes), chain.next);
  const ParsedFrame parsed = parse_frame(received(bytes));
  ASSERT_EQ(parsed.kind, chain.is_skipped ? FrameKind::kTcp : FrameKind::kMalformed);
  if (!chain.is_skipped) return;
  EXPECT_EQ(parsed.ip.header_bytes, kIpv6Bytes + chain.bytes.size());
  EXPECT_EQ(parsed.payload_bytes, 10U);
  EXPECT_TRUE(verify_checksums(received(bytes), parsed));
}

INSTANTIATE_TEST_SUITE_P(
    Chain, ExtensionHeaders,
    testing::Values(Chain{"padding_for_each_hop", 0, {6, 0, 1, 4, 0, 0, 0, 0}, true},
                    Chain{"router_alert", 0, {6, 0, 5, 2, 0, 0, 1, 0}, true},
                    Chain{"destination_options", 60, {6, 0, 0, 0, 0, 0, 0, 0}, true},
                    Chain{"unknown_option_to_skip", 60, {6, 0, 0x3e, 4, 9, 9, 9, 9}, true},
                    Chain{"unknown_option_to_drop", 60, {6, 0, 0x7e, 4, 9, 9, 9, 9}, false},
                    Chain{"unknown_option_to_report", 60, {6, 0, 0xbe, 4, 9, 9, 9, 9}, false},
                    Chain{"option_beyond_the_header", 60, {6, 0, 1, 5, 0, 0, 0, 0}, false},
                    Chain{"option_without_length", 60, {6, 0, 1, 3, 0, 0, 0, 1}, false},
                    Chain{"routed_already", 43, {6, 0, 4, 0, 0, 0, 0, 0}, true},
                    Chain{"to_be_routed_on", 43, {6, 0, 0, 1, 0, 0, 0, 0}, false},
                    Chain{"only_fragment", 44, {6, 0, 0, 0, 1, 2, 3, 4}, true},
                    Chain{"first_fragment", 44, {6, 0, 0, 1, 1, 2, 3, 4}, false},
                    Chain{"later_fragment", 44, {6, 0, 0, 8, 1, 2, 3, 4}, false},
                    Chain{
                        "three",
                        0,
                        {60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0},
                        true},
                    Chain{"for_each_hop_after_another",
                          60,
                          {0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0},
                          false},
                    Chain{"longer_than_the_packet", 60, {6, 200, 1, 4, 0, 0, 0, 0}, false}),
    [](const auto& test) { return test.param.name; });

TEST(Ipv6, EndlessChainsAreRefused) {
  Bytes chain;
  for (int i = 0; i < 7; ++i) {
    const Bytes one = bytes_of({i == 6 ? 6 : 60, 0, 1, 4, 0, 0, 0, 0});
    chain.insert(chain.end(), one.begin(), one.end());
  }
  EXPECT_EQ(kind_of(ipv6_frame(0, chain, 60)), FrameKind::kMalformed);
  chain.erase(chain.begin(), chain.begin() + 8);
  EXPECT_EQ(kind_of(ipv6_frame(0, chain, 60)), FrameKind::kTcp);
}

TEST(Ipv6, ExtensionHeadersDoNotReachIntoPadding) {
  Bytes bytes = ipv6_frame(0, bytes_of({6, 0, 1, 4, 0, 0, 0, 0}), 60);
  store_be16(bytes.data() + kIpAt + 4, 7);
  EXPECT_EQ(kind_of(bytes), FrameKind::kMalformed);
}

TEST(Ipv6, PseudoHeaderIsTheFortyBytesOfTheRfc) {
  Bytes header(40);
  store_ipv6_address(header.data(), kSource);
  store_ipv6_address(header.data() + 16, kDestination);
  store_be32(header.data() + 32, 0x12345);
  store_be32(header.data() + 36, 58);
  Checksum sum;
  sum.add(header);
  EXPECT_EQ(pseudo_header_checksum(kSource, kDestination, 0x12345, IpProtocol::kIcmpv6).folded(),
            sum.folded());
}

TEST(Ipv6, GroupsOfAnAddress) {
  EXPECT_EQ(solicited_node(kSource), *parse_ip("ff02::1:ffbc:def0"));
  EXPECT_EQ(to_string(group_mac(solicited_node(kSource))), "33:33:ff:bc:de:f0");
  EXPECT_EQ(to_string(group_mac(kAllNodes)), "33:33:00:00:00:01");
  EXPECT_EQ(kMldRouters, *parse_ip("ff02::16"));
}

}  // namespace
}  // namespace ztcp::wire
