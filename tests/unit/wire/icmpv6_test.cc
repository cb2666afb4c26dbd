// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ICMPv6: errors, echo, neighbour discovery and group membership.
#include "transport/wire/icmpv6.h"

#include <array>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/icmpv6_error.h"
#include "transport/wire/ndp.h"

namespace ztcp::wire {
namespace {

using Bytes = std::vector<std::byte>;

constexpr IpAddress kHost{0xfd00ULL << 48, 1};
constexpr IpAddress kPeer{0xfd00ULL << 48, 2};
constexpr IpAddress kRouter{0xfe80ULL << 48, 0x99};
constexpr MacAddress kMac{{2, 0, 0, 0, 0, 7}};

Checksum sum_of(IpAddress source, IpAddress destination, std::span<const std::byte> message) {
  Checksum sum = pseudo_header_checksum(
      source, destination, static_cast<std::uint32_t>(message.size()), IpProtocol::kIcmpv6);
  sum.add(message);
  return sum;
}

TEST(Icmpv6, PacketTooBigQuotesTheSegment) {
  Icmpv6Error in{.mtu_bytes = 1400,
                 .source = {kHost, 40000},
                 .destination = {kPeer, 7471},
                 .sequence = 0xdeadbeef};
  Bytes raw = icmpv6_error_message(in, kRouter);
  EXPECT_TRUE(sum_of(kRouter, kHost, raw).is_good());
  const auto out = parse_icmpv6_error(raw);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->type, IcmpError::kUnreachable);
  EXPECT_EQ(out->code, IcmpError::kFragmentationNeeded);
  EXPECT_EQ(out->next_hop_mtu_bytes, 1400);
  EXPECT_EQ(out->source, in.source);
  EXPECT_EQ(out->destination, in.destination);
  EXPECT_EQ(out->sequence, in.sequence);
  for (std::size_t size = 0; size < raw.size(); ++size)
    EXPECT_FALSE(parse_icmpv6_error(std::span(raw).first(size)));
  in.mtu_bytes = 0x10000;
  EXPECT_EQ(parse_icmpv6_error(icmpv6_error_message(in, kRouter))->next_hop_mtu_bytes, UINT16_MAX);
}

TEST(Icmpv6, ErrorsHaveTheMeaningOfIpv4s) {
  struct Meaning {
    int type;
    int code;
    int icmp_type;
    int icmp_code;
  };
  for (const Meaning& m : std::initializer_list<Meaning>{{1, 0, 3, IcmpError::kNet},
                                                         {1, 1, 3, IcmpError::kProhibited},
                                                         {1, 3, 3, IcmpError::kHost},
                                                         {1, 4, 3, IcmpError::kPort},
                                                         {1, 77, 3, IcmpError::kNet},
                                                         {3, 0, 11, 0},
                                                         {4, 0, 12, 0},
                                                         {4, 1, 3, IcmpError::kProtocol}}) {
    const auto error =
        parse_icmpv6_error(icmpv6_error_message({.type = Icmpv6Type(m.type),
                                                 .code = static_cast<std::uint8_t>(m.code),
                                                 .source = {kHost, 1},
                                                 .destination = {kPeer, 2}},
                                                kRouter));
    ASSERT_TRUE(error) << m.type;
    EXPECT_EQ(error->type, m.icmp_type) << m.type << ' ' << m.code;
    EXPECT_EQ(error->code, m.icmp_code) << m.type << ' ' << m.code;
  }
  EXPECT_FALSE(parse_icmpv6_error(icmpv6_error_message({.type = Icmpv6Type(5)}, kRouter)));
}

TEST(Icmpv6, EchoIsAnswered) {
  Bytes message(20, std::byte{5});
  message[0] = std::byte{128};
  message[1] = std::byte{0};
  EXPECT_TRUE(is_icmpv6_echo_request(message));
  make_icmpv6_echo_reply(kHost, kPeer, message);
  EXPECT_FALSE(is_icmpv6_echo_request(message));
  EXPECT_EQ(message[0], std::byte{129});
  EXPECT_EQ(message[19], std::byte{5});
  EXPECT_TRUE(sum_of(kHost, kPeer, message).is_good());
}

// A message between two hosts as it arrives.
struct Arriving {
  IpHeader ip;
  Bytes message;
  std::optional<NeighbourMessage> parse() const { return parse_neighbour_message(ip, message); }
};

Arriving arriving(const NeighbourMessage& message, IpAddress source, IpAddress destination) {
  Arriving out;
  out.ip.source = source;
  out.ip.destination = destination;
  out.ip.protocol = IpProtocol::kIcmpv6;
  out.ip.hop_limit = kNdpHopLimit;
  out.ip.header_bytes = kIpv6Bytes;
  out.message.resize(kEmittedNdpBytes);
  out.message.resize(emit_neighbour_message(message, source, destination, out.message.data()));
  EXPECT_TRUE(sum_of(source, destination, out.message).is_good());
  return out;
}

const NeighbourMessage kAdvertisement{.is_advertisement = true,
                                      .target = kPeer,
                                      .mac = kMac,
                                      .is_router = false,
                                      .is_solicited = true,
                                      .overrides = true};

TEST(Ndp, SolicitationRoundTrip) {
  const auto out = arriving({.target = kPeer, .mac = kMac}, kHost, solicited_node(kPeer)).parse();
  ASSERT_TRUE(out);
  EXPECT_FALSE(out->is_advertisement);
  EXPECT_EQ(out->target, kPeer);
  EXPECT_EQ(out->mac, kMac);
}

TEST(Ndp, AdvertisementRoundTrip) {
  for (int flags = 0; flags < 8; ++flags) {
    NeighbourMessage in = kAdvertisement;
    in.is_router = (flags & 1) != 0;
    in.is_solicited = (flags & 2) != 0;
    in.overrides = (flags & 4) != 0;
    if (flags == 0) in.mac.reset();
    const auto out = arriving(in, kPeer, kHost).parse();
    ASSERT_TRUE(out);
    EXPECT_TRUE(out->is_advertisement);
    EXPECT_EQ(out->is_router, in.is_router);
    EXPECT_EQ(out->is_solicited, in.is_solicited);
    EXPECT_EQ(out->overrides, in.overrides);
    EXPECT_EQ(out->mac, in.mac);
  }
}

// RFC 4861 sections 7.1.1 and 7.1.2.
TEST(Ndp, DiscardsWhatTheRfcHasHostsDiscard) {
  const std::vector<std::function<void(Arriving&)>> faults = {
      [](Arriving& a) { a.ip.hop_limit = 254; },
      [](Arriving& a) { a.ip.header_bytes += 8; },
      [](Arriving& a) { a.message[1] = std::byte{1}; },
      [](Arriving& a) { a.message.resize(kNdpBytes - 1); },
      [](Arriving& a) { a.message[kNdpBytes + 1] = std::byte{0}; },  // An option of no bytes.
      [](Arriving& a) { a.message[kNdpBytes + 1] = std::byte{2}; },  // Longer than the message.
      [](Arriving& a) { a.message.push_back(std::byte{1}); },        // Half an option.
      [](Arriving& a) { a.message[8] = std::byte{0xff}; },           // A group as target.
      [](Arriving& a) { a.ip.destination = kAllNodes; },             // Solicited, but to all.
      [](Arriving& a) { a.message[0] = std::byte{137}; },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Arriving a = arriving(kAdvertisement, kPeer, kHost);
    ASSERT_TRUE(a.parse());
    faults[i](a);
    EXPECT_FALSE(a.parse()) << i;
  }
}

TEST(Ndp, ProbesOfDuplicateAddressesHaveNoMac) {
  EXPECT_TRUE(arriving({.target = kPeer}, IpAddress(), solicited_node(kPeer)).parse());
  EXPECT_FALSE(arriving({.target = kPeer}, IpAddress(), kPeer).parse());
  EXPECT_FALSE(
      arriving({.target = kPeer, .mac = kMac}, IpAddress(), solicited_node(kPeer)).parse());
}

TEST(Ndp, OtherOptionsAreSkipped) {
  Arriving a = arriving(kAdvertisement, kPeer, kHost);
  Bytes nonce(16);
  nonce[0] = std::byte{14};
  nonce[1] = std::byte{2};
  a.message.insert(a.message.begin() + kNdpBytes, nonce.begin(), nonce.end());
  ASSERT_TRUE(a.parse());
  EXPECT_EQ(a.parse()->mac, kMac);
}

TEST(Mld, ReportIsTheMessageOfTheRfc) {
  Bytes raw(kMldAlertBytes + kMldReportBytes);
  ASSERT_EQ(emit_mld_report(solicited_node(kHost), IpAddress(), raw.data()), raw.size());
  const auto report = std::span<const std::byte>(raw).subspan(kMldAlertBytes);
  EXPECT_EQ(raw[0], std::byte{58});
  EXPECT_EQ(report[0], std::byte{143});
  EXPECT_EQ(load_ipv6_address(report.data() + 12), solicited_node(kHost));
  EXPECT_TRUE(sum_of(IpAddress(), kMldRouters, report).is_good());
}

TEST(Mld, QueriesForAllGroupsAndForOursAreHeard) {
  const IpAddress ours = solicited_node(kHost);
  Bytes query(28);
  query[0] = std::byte{130};
  IpHeader ip;
  ip.source = kRouter;
  ip.hop_limit = 1;
  EXPECT_TRUE(is_mld_query_for(ours, ip, query));
  store_ipv6_address(query.data() + 8, ours);
  EXPECT_TRUE(is_mld_query_for(ours, ip, query));
  store_ipv6_address(query.data() + 8, solicited_node(kPeer));
  EXPECT_FALSE(is_mld_query_for(ours, ip, query));
  store_ipv6_address(query.data() + 8, IpAddress());
  ip.hop_limit = 2;
  EXPECT_FALSE(is_mld_query_for(ours, ip, query));
  ip.hop_limit = 1;
  ip.source = kPeer;
  EXPECT_FALSE(is_mld_query_for(ours, ip, query));
  ip.source = kRouter;
  EXPECT_FALSE(is_mld_query_for(ours, ip, std::span(query).first(23)));
}

}  // namespace
}  // namespace ztcp::wire
