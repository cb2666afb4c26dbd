// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/frame_parser.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"

namespace ztcp::wire {
namespace {

constexpr MacAddress kOurs{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kTheirs{{2, 0, 0, 0, 0, 2}};

// A TCP frame with good checksums.
std::vector<std::byte> tcp_frame(std::size_t payload_bytes, std::uint16_t vlan_id = 0) {
  std::vector<std::byte> frame(128);
  EthernetHeader ethernet{kOurs, kTheirs, vlan_id, EtherType::kIpv4};
  TcpHeader tcp;
  tcp.source_port = 40000;
  tcp.destination_port = 7471;
  tcp.sequence = 0xfffffff0;
  tcp.acknowledgment = 77;
  tcp.window = 512;
  tcp.flags = kAck | kPsh;
  tcp.options.timestamps = Timestamps{5, 6};
  Ipv4Header ip;
  ip.source.value = 0x0a4d010a;
  ip.destination.value = 0x0a4d010b;
  ip.ecn = Ecn::kEct0;
  ip.dscp = 10;
  const std::size_t l2 = emit_ethernet(ethernet, frame.data());
  const std::size_t l4 = l2 + kIpv4Bytes;
  const std::size_t tcp_bytes = emit_tcp(tcp, frame.data() + l4);
  ip.total_bytes = static_cast<std::uint16_t>(kIpv4Bytes + tcp_bytes + payload_bytes);
  emit_ipv4(ip, frame.data() + l2);
  frame.resize(l4 + tcp_bytes);
  for (std::size_t i = 0; i < payload_bytes; ++i) frame.push_back(std::byte(i * 7));
  Checksum sum = pseudo_header_checksum(ip.source, ip.destination,
                                        static_cast<std::uint32_t>(tcp_bytes + payload_bytes));
  sum.add(std::span(frame).subspan(l4));
  store_be16(frame.data() + l4 + kTcpChecksumOffset, sum.finish());
  return frame;
}

RxFrame view(std::span<const std::byte> bytes) {
  RxFrame frame;
  frame.head = bytes;
  return frame;
}

TEST(FrameParser, AcceptsOnlyWholeHeaders) {
  const auto bytes = tcp_frame(0);
  ASSERT_EQ(parse_frame(view(bytes)).kind, FrameKind::kTcp);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(parse_frame(view(std::span(bytes).first(size))).kind, FrameKind::kMalformed) << size;
}

TEST(FrameParser, ReadsEveryField) {
  for (const std::uint16_t vlan : std::array<std::uint16_t, 2>{0, 42}) {
    const auto bytes = tcp_frame(100, vlan);
    const auto parsed = parse_frame(view(bytes));
    ASSERT_EQ(parsed.kind, FrameKind::kTcp);
    EXPECT_EQ(parsed.ethernet.destination, kOurs);
    EXPECT_EQ(parsed.ethernet.source, kTheirs);
    EXPECT_EQ(parsed.ethernet.vlan_id, vlan);
    EXPECT_EQ(parsed.ip.source, IpAddress(Ipv4Address{0x0a4d010aU}));
    EXPECT_EQ(parsed.ip.destination, IpAddress(Ipv4Address{0x0a4d010bU}));
    EXPECT_EQ(parsed.ip.ecn, Ecn::kEct0);
    EXPECT_EQ(parsed.ip.dscp, 10);
    EXPECT_EQ(parsed.tcp.source_port, 40000);
    EXPECT_EQ(parsed.tcp.destination_port, 7471);
    EXPECT_EQ(parsed.tcp.sequence, 0xfffffff0U);
    EXPECT_EQ(parsed.tcp.acknowledgment, 77U);
    EXPECT_EQ(parsed.tcp.window, 512);
    EXPECT_EQ(parsed.tcp.flags, kAck | kPsh);
    EXPECT_EQ(parsed.tcp.options.timestamps, (Timestamps{5, 6}));
    EXPECT_EQ(parsed.payload_bytes, 100U);
    EXPECT_EQ(parsed.payload_offset, bytes.size() - 100);
    EXPECT_TRUE(verify_checksums(view(bytes), parsed));
  }
}

TEST(FrameParser, EthernetPaddingIsNotPayload) {
  auto bytes = tcp_frame(1);
  bytes.resize(bytes.size() + 30, std::byte{0xee});
  const auto parsed = parse_frame(view(bytes));
  EXPECT_EQ(parsed.kind, FrameKind::kTcp);
  EXPECT_EQ(parsed.payload_bytes, 1U);
  EXPECT_TRUE(verify_checksums(view(bytes), parsed));
}

TEST(FrameParser, HeadersDoNotReachIntoPadding) {
  auto bytes = tcp_frame(0);
  store_be16(bytes.data() + 16, 39);  // One byte short of the smallest TCP header.
  bytes.resize(200);
  EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kMalformed);
}

TEST(FrameParser, RefusesFragmentsAndOtherVersions) {
  auto bytes = tcp_frame(10);
  for (const std::uint16_t field : std::array<std::uint16_t, 3>{0x2000, 0x0001, 0x3fff}) {
    store_be16(bytes.data() + 20, field);
    EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kMalformed) << field;
  }
  bytes = tcp_frame(10);
  bytes[14] = std::byte{0x65};
  EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kMalformed);
  bytes[14] = std::byte{0x44};
  EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kMalformed);
}

TEST(FrameParser, AcceptsIpOptions) {
  const auto plain = tcp_frame(10);
  std::vector<std::byte> bytes(plain.begin(), plain.begin() + 34);
  bytes.insert(bytes.end(), 4, std::byte{1});
  bytes.insert(bytes.end(), plain.begin() + 34, plain.end());
  bytes[14] = std::byte{0x46};
  store_be16(bytes.data() + 16, static_cast<std::uint16_t>(bytes.size() - 14));
  store_be16(bytes.data() + 24, 0);
  store_be16(bytes.data() + 24, internet_checksum(std::span(bytes).subspan(14, 24)));
  const auto parsed = parse_frame(view(bytes));
  ASSERT_EQ(parsed.kind, FrameKind::kTcp);
  EXPECT_EQ(parsed.payload_bytes, 10U);
  EXPECT_TRUE(verify_checksums(view(bytes), parsed));
}

TEST(FrameParser, EveryDamagedBitOfIpAndTcpIsSeen) {
  const auto good = tcp_frame(33);
  for (std::size_t bit = 14 * 8; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto parsed = parse_frame(view(bytes));
    if (parsed.kind != FrameKind::kTcp) continue;
    EXPECT_FALSE(verify_checksums(view(bytes), parsed)) << bit;
  }
}

TEST(FrameParser, ChecksumAcrossPiecesOfOddLengths) {
  const auto bytes = tcp_frame(301);
  for (std::size_t cut = 66; cut <= bytes.size(); ++cut) {
    for (const std::size_t second : {std::size_t{0}, std::size_t{1}, std::size_t{13}}) {
      const auto rest = std::span(bytes).subspan(cut);
      const std::size_t split = std::min(second, rest.size());
      const std::array<std::span<const std::byte>, 2> more{rest.first(split), rest.subspan(split)};
      RxFrame frame = view(std::span(bytes).first(cut));
      frame.more = more;
      const auto parsed = parse_frame(frame);
      ASSERT_EQ(parsed.kind, FrameKind::kTcp);
      ASSERT_EQ(parsed.payload_bytes, 301U);
      ASSERT_TRUE(verify_checksums(frame, parsed)) << cut << ' ' << split;
      std::vector<std::byte> payload;
      for_each_piece(frame, parsed.payload_offset + 5, 200, [&](auto piece) {
        payload.insert(payload.end(), piece.begin(), piece.end());
      });
      ASSERT_TRUE(
          std::equal(payload.begin(), payload.end(), bytes.begin() + 71, bytes.begin() + 271));
    }
  }
}

TEST(FrameParser, TrustsTheNicWhenItChecked) {
  auto bytes = tcp_frame(10);
  bytes.back() ^= std::byte{1};
  RxFrame frame = view(bytes);
  const auto parsed = parse_frame(frame);
  EXPECT_FALSE(verify_checksums(frame, parsed));
  frame.checksum_good = true;
  EXPECT_TRUE(verify_checksums(frame, parsed));
}

TEST(FrameParser, RecognisesForeignFrames) {
  auto bytes = tcp_frame(0);
  store_be16(bytes.data() + 12, 0x88cc);
  EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kForeign);
  store_be16(bytes.data() + 12, 0x0806);
  EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kArp);
  bytes = tcp_frame(0);
  bytes[23] = std::byte{17};
  EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kForeign);
  bytes[23] = std::byte{1};
  EXPECT_EQ(parse_frame(view(bytes)).kind, FrameKind::kIcmp);
}

}  // namespace
}  // namespace ztcp::wire
