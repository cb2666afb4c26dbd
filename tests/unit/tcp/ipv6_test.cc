// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Stack with an IPv6 address: headers, packet sizes, ICMPv6, neighbour discovery, and the probe
// of its own address.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/icmpv6_error.h"
#include "tests/unit/tcp/harness.h"
#include "transport/wire/checksum.h"
#include "transport/wire/icmpv6.h"
#include "transport/wire/ndp.h"

namespace ztcp::tcp::test {
namespace {

constexpr MacAddress kThirdMac{{0x02, 0, 0, 0, 0, 9}};
constexpr IpAddress kIpv6Router{0xfe80ULL << 48, 0xfe};

struct Ipv6Peer : Peer {
  Ipv6Peer() : Peer(test_config(/*is_ipv6=*/true)) {}
  explicit Ipv6Peer(const StackConfig& with) : Peer(with) {}

  void arrives(Bytes bytes, IpAddress source, IpAddress destination, std::uint8_t hop_limit = 255) {
    const auto frame = icmpv6_from_peer(std::move(bytes), source, destination, hop_limit);
    stack.on_frames(now, std::span(&frame->view, 1));
  }
  void arrives(const wire::NeighbourMessage& ndp, IpAddress source, IpAddress destination) {
    Bytes bytes(wire::kEmittedNdpBytes);
    bytes.resize(wire::emit_neighbour_message(ndp, source, destination, bytes.data()));
    arrives(std::move(bytes), source, destination);
  }
  // The only frame that the Stack sends now, and that is no segment.
  wire::ParsedFrame answer() {
    EXPECT_TRUE(collect().empty());
    EXPECT_EQ(others.size(), 1U);
    if (others.empty()) return {};
    RxFrame rx;
    rx.head = others.front();
    const wire::ParsedFrame parsed = wire::parse_frame(rx);
    EXPECT_EQ(parsed.kind, wire::FrameKind::kIcmpv6);
    EXPECT_TRUE(wire::verify_icmp_checksums(rx, parsed));
    message = Bytes(others.front().begin() + static_cast<std::ptrdiff_t>(parsed.payload_offset),
                    others.front().end());
    return parsed;
  }
  bool is_quiet() { return collect().empty() && others.empty(); }

  Bytes message;  // The last answer()'s.
};

const wire::NeighbourMessage kSolicitation{.target = kOurIpv6, .mac = kPeerMac};

TEST(Ipv6Connection, DataFlowsBothWays) {
  Ipv6Peer peer;
  peer.open();
  EXPECT_EQ(peer.arp_requests, 1) << "a solicitation";
  peer.write(3000);
  const auto segs = peer.collect();
  ASSERT_EQ(segs.size(), 3U);
  EXPECT_EQ(segs[0].payload.size(), 1500U - 40 - 32);
  peer.ack(peer.first() + 3000);
  EXPECT_EQ(peer.user.acked, 3000U);
  peer.send_data(1000, peer.first() + 3000);
  EXPECT_EQ(peer.user.received.size(), 1000U);
}

TEST(Ipv6Connection, OffersAndAssumesTheMssOfItsHeaders) {
  Ipv6Peer peer;
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIpv6, kPeerPort}, peer.user));
  const Seg syn = peer.collect_one();
  EXPECT_EQ(syn.options.mss_bytes, 1440);
  Ipv6Peer silent;  // About its MSS: RFC 9293 section 3.7.1.
  wire::TcpOptions options = offer();
  options.mss_bytes.reset();
  silent.open(options);
  silent.write(5000);
  EXPECT_EQ(silent.collect().front().payload.size(), 1220U - 12);
}

TEST(Ipv6Connection, FlowLabelsDifferBetweenFlowsAlone) {
  StackConfig config = test_config(/*is_ipv6=*/true);
  config.tcp.reroutes = false;
  Ipv6Peer peer(config);
  std::vector<std::uint32_t> labels;
  for (std::uint16_t port = 7000; port < 7003; ++port) {
    User user;
    ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIpv6, port}, user));
    peer.collect();
    const std::byte* ip = peer.raw.back().header.data() + kIpAt;
    labels.push_back(wire::load_be32(ip) & 0xfffff);
    EXPECT_EQ(wire::load_be32(ip) >> 20, 0x600U);
    peer.pass(300ms);
    peer.collect();
    const std::byte* again = peer.raw.back().header.data() + kIpAt;
    EXPECT_EQ(wire::load_be32(again) & 0xfffff, labels.back()) << "of the repeated SYN";
    (*peer.stack.connect(peer.now, {kPeerIpv6, port}, user))->abort();
  }
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(std::unique(labels.begin(), labels.end()), labels.end());
}

// The traffic class straddles two bytes (RFC 8200 section 3).
TEST(Ipv6Connection, PacketsCarryDscpAndMarks) {
  StackConfig config = test_config(/*is_ipv6=*/true);
  config.dscp = 46;
  Peer peer(config);
  const auto stream = peer.stack.connect(peer.now, {kPeerIpv6, kPeerPort}, peer.user);
  ASSERT_TRUE(stream);
  peer.user.stream = *stream;
  const Seg syn = peer.collect_one();
  EXPECT_EQ(syn.ecn, wire::Ecn::kNotCapable);
  peer.iss = syn.seq;
  peer.send({.flags = wire::kSyn | wire::kAck | wire::kEce,
             .seq = peer.irs,
             .ack = peer.first(),
             .options = offer()});
  peer.collect();
  peer.write(3000);
  const auto segs = peer.collect();
  ASSERT_EQ(segs.size(), 3U);
  for (const Seg& seg : segs) EXPECT_EQ(seg.ecn, wire::Ecn::kEct0);
  for (const TxFrame& frame : peer.raw)
    EXPECT_EQ(wire::load_be32(frame.header.data() + kIpAt) >> 20, 0x600U | 46U << 2 | 2U);
  peer.send({.seq = peer.peer_nxt(),
             .ack = peer.first(),
             .payload = pattern(10),
             .ecn = wire::Ecn::kCongestion});
  EXPECT_TRUE(peer.collect_one().flags.has(wire::kEce)) << "the mark is reported";
}

TEST(Ipv6Connection, ChecksumFieldHoldsThePseudoHeaderForOffload) {
  StackConfig config = test_config(/*is_ipv6=*/true);
  config.tx_checksum_offload = true;
  Stack stack(config, {1, 2});
  User user;
  std::vector<TxFrame> out(8);
  stack.collect(at(0s), out);
  ASSERT_TRUE(stack.connect(at(0s), {kOurIpv6, 80}, user));
  ASSERT_EQ(stack.collect(at(0s), out), 1U);
  EXPECT_TRUE(out[0].checksum_offload);
  EXPECT_EQ(out[0].l3_bytes, 40);
  EXPECT_EQ(wire::load_be16(out[0].header.data() + 14 + 40 + 16),
            wire::pseudo_header_checksum(kOurIpv6, kOurIpv6, out[0].header_bytes - 54U).folded());
}

TEST(Ipv6Connection, FramesOfTheOtherFamilyAreNotForUs) {
  Ipv6Peer peer;
  auto syn = frame_from_peer({.flags = wire::kSyn}, 80, 5000, /*is_ipv6=*/false);
  peer.stack.on_frames(peer.now, std::span(&syn->view, 1));
  Peer ipv4;
  syn = frame_from_peer({.flags = wire::kSyn}, 80, 5000, /*is_ipv6=*/true);
  ipv4.stack.on_frames(ipv4.now, std::span(&syn->view, 1));
  EXPECT_TRUE(peer.is_quiet());
  EXPECT_TRUE(ipv4.collect().empty());
  EXPECT_EQ(peer.stack.counters().rx_not_for_us, 1U);
  EXPECT_EQ(ipv4.stack.counters().rx_not_for_us, 1U);
  EXPECT_EQ(peer.stack.connect(peer.now, {kPeerIp, 80}, peer.user).error().code, Errc::kNoRoute);
}

TEST(Ipv6Connection, SourcesThatNoHostHasAreNotForUs) {
  Ipv6Peer peer;
  for (const char* source : {"::", "::1", "ff02::1"}) {
    auto syn = frame_from_peer({.flags = wire::kSyn}, 80, 5000, /*is_ipv6=*/true);
    wire::store_ipv6_address(syn->bytes.data() + kIpAt + 8, *parse_ip(source));
    syn->view.checksum_good = true;
    peer.stack.on_frames(peer.now, std::span(&syn->view, 1));
    EXPECT_TRUE(peer.is_quiet()) << source;
  }
  EXPECT_EQ(peer.stack.counters().rx_not_for_us, 3U);
}

class PacketTooBig : public testing::Test {
 protected:
  void report(std::uint32_t sequence, std::uint32_t mtu) {
    peer.arrives(wire::icmpv6_error_message({.mtu_bytes = mtu,
                                             .source = {kOurIpv6, peer.our_port},
                                             .destination = {kPeerIpv6, peer.peer_port},
                                             .sequence = sequence},
                                            kIpv6Router),
                 kIpv6Router, kOurIpv6, 64);
  }
  Ipv6Peer peer;
};

TEST_F(PacketTooBig, SegmentsDataInFlightAgain) {
  peer.open();
  peer.write(4 * 1428);
  ASSERT_EQ(peer.collect().size(), 4U);
  report(peer.first() + 1428, 1400);
  const auto again = peer.collect();
  ASSERT_GE(again.size(), 4U);
  EXPECT_EQ(again[0].payload.size(), 1400U - 40 - 32);
}

// RFC 8201 section 4.
TEST_F(PacketTooBig, BelowTheLeastMtuIsIgnored) {
  peer.open();
  peer.write(2 * 1428);
  ASSERT_EQ(peer.collect().size(), 2U);
  report(peer.first(), 1279);
  report(peer.first(), 0);
  report(peer.first() - 1, 1300);  // Not in flight.
  EXPECT_TRUE(peer.collect().empty());
  report(peer.first(), 1280);
  EXPECT_FALSE(peer.collect().empty());
}

// RFC 9293 SHLD-26.
TEST(Icmpv6, APortThatIsUnreachableEndsAConnectAtOnce) {
  Ipv6Peer peer;
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIpv6, kPeerPort}, peer.user));
  const Seg syn = peer.collect_one();
  peer.arrives(wire::icmpv6_error_message({.type = wire::Icmpv6Type::kUnreachable,
                                           .code = 4,
                                           .source = {kOurIpv6, peer.our_port},
                                           .destination = {kPeerIpv6, kPeerPort},
                                           .sequence = syn.seq},
                                          kPeerIpv6),
               kPeerIpv6, kOurIpv6, 64);
  ASSERT_TRUE(peer.user.failed);
  EXPECT_EQ(peer.user.failed->code, Errc::kNoRoute);
}

TEST(Icmpv6, EchoIsAnswered) {
  Ipv6Peer peer;
  Bytes ping(300, std::byte{42});
  ping[0] = std::byte{128};
  ping[1] = std::byte{0};
  peer.arrives(ping, kPeerIpv6, kOurIpv6, 64);
  const wire::ParsedFrame parsed = peer.answer();
  EXPECT_EQ(parsed.ip.source, kOurIpv6);
  EXPECT_EQ(parsed.ip.destination, kPeerIpv6);
  EXPECT_EQ(parsed.ethernet.destination, kPeerMac);
  ASSERT_EQ(peer.message.size(), 300U);
  EXPECT_EQ(peer.message[0], std::byte{129});
  EXPECT_EQ(peer.message[299], std::byte{42});
  peer.arrives(ping, kPeerIpv6, wire::kAllNodes, 64);
  EXPECT_TRUE(peer.is_quiet()) << "an echo to a group would be amplified";
}

TEST(NeighbourDiscovery, SolicitationsAreAnswered) {
  for (const IpAddress to : {kOurIpv6, wire::solicited_node(kOurIpv6)}) {
    Ipv6Peer peer;
    peer.pass(2s);
    peer.arrives(kSolicitation, kPeerIpv6, to);
    const wire::ParsedFrame parsed = peer.answer();
    EXPECT_EQ(parsed.ethernet.destination, kPeerMac);
    EXPECT_EQ(parsed.ip.destination, kPeerIpv6);
    EXPECT_EQ(parsed.ip.hop_limit, 255);
    const auto reply = wire::parse_neighbour_message(parsed.ip, peer.message);
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->is_advertisement);
    EXPECT_EQ(reply->target, kOurIpv6);
    EXPECT_EQ(reply->mac, kOurMac);
    EXPECT_TRUE(reply->is_solicited);
    EXPECT_TRUE(reply->overrides);
    EXPECT_FALSE(reply->is_router);
  }
}

TEST(NeighbourDiscovery, RoutedOrForeignSolicitationsAreNot) {
  Ipv6Peer peer;
  Bytes routed(wire::kEmittedNdpBytes);
  wire::emit_neighbour_message(kSolicitation, kPeerIpv6, kOurIpv6, routed.data());
  peer.arrives(routed, kPeerIpv6, kOurIpv6, 254);
  wire::NeighbourMessage other = kSolicitation;
  other.target = kPeerIpv6;
  peer.arrives(other, kPeerIpv6, wire::solicited_node(kOurIpv6));
  peer.arrives(kSolicitation, IpAddress(0, 1), kOurIpv6);
  EXPECT_TRUE(peer.is_quiet());
}

TEST(NeighbourDiscovery, AFloodGetsAtMostOneRingOfAnswers) {
  Ipv6Peer peer;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    peer.arrives(kSolicitation, {0xfd00ULL << 48, 0x100 + i}, kOurIpv6);
  std::vector<TxFrame> out(1000);
  EXPECT_LE(peer.stack.collect(peer.now, out), 64U);
}

TEST(OwnAddress, GroupIsReportedAndAddressProbedAtTheStart) {
  Stack stack(test_config(/*is_ipv6=*/true), {1, 2});
  EXPECT_EQ(stack.next_deadline(), TimePoint{});
  std::vector<TxFrame> out(8);
  ASSERT_EQ(stack.collect(at(0s), out), 2U);
  const auto parse = [](const TxFrame& frame) {
    RxFrame rx;
    rx.head = std::span(frame.header).first(frame.header_bytes);
    EXPECT_TRUE(wire::verify_icmp_checksums(rx, wire::parse_frame(rx)));
    return wire::parse_frame(rx);
  };
  const wire::ParsedFrame report = parse(out[0]);
  EXPECT_EQ(report.ip.destination, wire::kMldRouters);
  EXPECT_EQ(report.ip.source, IpAddress());
  EXPECT_EQ(report.ip.hop_limit, 1);
  EXPECT_EQ(report.ethernet.destination, wire::group_mac(wire::kMldRouters));
  const wire::ParsedFrame probe = parse(out[1]);
  EXPECT_EQ(probe.ip.source, IpAddress());
  EXPECT_EQ(probe.ip.destination, wire::solicited_node(kOurIpv6));
  const auto message = wire::parse_neighbour_message(
      probe.ip,
      std::span<const std::byte>(out[1].header).subspan(probe.payload_offset, probe.payload_bytes));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->target, kOurIpv6);
  EXPECT_EQ(message->mac, std::nullopt);
  EXPECT_EQ(stack.collect(at(0s), out), 0U);
}

TEST(OwnAddress, GroupIsReportedWhenASwitchAsks) {
  Ipv6Peer peer;
  Bytes query(28);
  query[0] = std::byte{130};
  peer.arrives(query, kIpv6Router, wire::kAllNodes, 1);
  EXPECT_EQ(peer.answer().ip.destination, wire::kMldRouters);
  EXPECT_EQ(wire::load_ipv6_address(peer.message.data() + 12), wire::solicited_node(kOurIpv6));
}

// RFC 4862 section 5.4: by the owner's answer, and by another host's probe at the same time.
TEST(OwnAddress, ADuplicateIsFoundWithinASecond) {
  const wire::NeighbourMessage claim{.is_advertisement = true,
                                     .target = kOurIpv6,
                                     .mac = kThirdMac,
                                     .is_router = false,
                                     .is_solicited = false,
                                     .overrides = true};
  Ipv6Peer answered;
  answered.pass(900ms);
  answered.arrives(claim, kOurIpv6, wire::kAllNodes);
  EXPECT_EQ(answered.stack.duplicate(), kThirdMac);
  EXPECT_EQ(answered.stack.connect(answered.now, {kPeerIpv6, 80}, answered.user).error().code,
            Errc::kBadConfig);
  answered.arrives(kSolicitation, kPeerIpv6, kOurIpv6);
  EXPECT_TRUE(answered.is_quiet()) << "the other host's";

  Ipv6Peer probed;
  probed.arrives({.target = kOurIpv6}, IpAddress(), wire::solicited_node(kOurIpv6));
  EXPECT_EQ(probed.stack.duplicate(), kPeerMac);

  Ipv6Peer late;
  late.pass(1100ms);
  late.arrives(claim, kOurIpv6, wire::kAllNodes);
  EXPECT_EQ(late.stack.duplicate(), std::nullopt) << "a forger's";
  EXPECT_EQ(late.stack.counters().arp_own_address_claimed, 1U);
}

TEST(OwnAddress, IsDefendedAgainstALaterProbe) {
  Ipv6Peer peer;
  peer.pass(2s);
  peer.arrives({.target = kOurIpv6}, IpAddress(), wire::solicited_node(kOurIpv6));
  const wire::ParsedFrame parsed = peer.answer();
  EXPECT_EQ(parsed.ip.destination, wire::kAllNodes);
  EXPECT_EQ(parsed.ethernet.destination, wire::group_mac(wire::kAllNodes));
  const auto reply = wire::parse_neighbour_message(parsed.ip, peer.message);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->is_solicited);
  EXPECT_EQ(peer.stack.duplicate(), std::nullopt);
}

TEST(OwnAddress, IsProbedAgainWhenTheLinkComesUp) {
  Ipv6Peer peer;
  EXPECT_TRUE(peer.is_quiet());
  peer.stack.announce();
  peer.collect();
  EXPECT_EQ(peer.others.size(), 2U);
}

}  // namespace
}  // namespace ztcp::tcp::test
