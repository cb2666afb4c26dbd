// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A Stack that finds its routers by their advertisements (RFC 4861 section 6.3): solicitations,
// lifetimes, preferences, silent and forged routers. The peer is in another network.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/wire/ndp.h"
#include "transport/wire/router_advertisement.h"

namespace ztcp::tcp::test {
namespace {

using wire::RouterPreference;

constexpr IpAddress kRouterA{0xfe80ULL << 48, 0xa};
constexpr IpAddress kRouterB{0xfe80ULL << 48, 0xb};
constexpr MacAddress kMacA = kPeerMac;  // The peer's segments come through this router.
constexpr MacAddress kMacB{{0x02, 0, 0, 0, 0, 0xb}};

StackConfig config_without_gateway() {
  StackConfig config = test_config(/*is_ipv6=*/true);
  config.address.length = 128;
  config.finds_router = true;
  return config;
}

Bytes advertisement_of(std::uint16_t lifetime_s, RouterPreference preference) {
  Bytes message(wire::kRouterAdvertisementBytes);
  wire::store_u8(message.data(), 134);
  constexpr std::array<std::uint8_t, 3> kBits{3, 0, 1};
  wire::store_u8(message.data() + 5,
                 static_cast<std::uint8_t>(kBits[static_cast<std::size_t>(preference)] << 3));
  wire::store_be16(message.data() + 6, lifetime_s);
  return message;
}

struct RoutedPeer : Peer {
  RoutedPeer() : Peer(config_without_gateway()) { has_routers = true; }

  void arrives(Bytes message, IpAddress source, IpAddress to = wire::kAllNodes,
               std::uint8_t hop_limit = 255) {
    const auto frame = icmpv6_from_peer(std::move(message), source, to, hop_limit);
    stack.on_frames(now, std::span(&frame->view, 1));
  }
  void advertise(IpAddress router, std::uint16_t lifetime_s = 1800,
                 RouterPreference preference = RouterPreference::kMedium) {
    arrives(advertisement_of(lifetime_s, preference), router);
  }
  // The routers that the Stack asks for their MAC address now.
  std::vector<IpAddress> asked() {
    collect();
    std::vector<IpAddress> targets;
    for (const Bytes& bytes : others) {
      RxFrame rx;
      rx.head = bytes;
      const wire::ParsedFrame parsed = wire::parse_frame(rx);
      const auto message =
          wire::parse_neighbour_message(parsed.ip, std::span(bytes).subspan(parsed.payload_offset));
      if (message && parsed.ip.source != IpAddress()) targets.push_back(message->target);
    }
    return targets;
  }
  void answers(IpAddress router, MacAddress mac) {
    Bytes message(wire::kEmittedNdpBytes);
    message.resize(wire::emit_neighbour_message({.is_advertisement = true,
                                                 .target = router,
                                                 .mac = mac,
                                                 .is_router = true,
                                                 .is_solicited = true,
                                                 .overrides = true},
                                                router, kOurIpv6, message.data()));
    arrives(std::move(message), router, kOurIpv6);
  }
  // A router advertises itself, and answers the request for its MAC address.
  void comes_up(IpAddress router, MacAddress mac,
                RouterPreference preference = RouterPreference::kMedium) {
    advertise(router, 1800, preference);
    EXPECT_EQ(asked(), std::vector{router});
    answers(router, mac);
  }
  // Lets time pass; routers in `alive` answer. Returns the MAC addresses that segments went to.
  std::vector<MacAddress> run(Duration span, std::vector<std::pair<IpAddress, MacAddress>> alive) {
    std::vector<MacAddress> to;
    for (const TimePoint end = now + span; now < end;) {
      pass(10ms);
      for (const IpAddress router : asked())
        for (const auto& [address, mac] : alive)
          if (router == address) answers(address, mac);
      for (const TxFrame& frame : raw) {
        MacAddress& mac = to.emplace_back();
        std::memcpy(mac.bytes.data(), frame.header.data(), mac.bytes.size());
      }
    }
    return to;
  }
  bool reaches_others() {
    User other;
    const auto stream = stack.connect(now, {kPeerIpv6, 7001}, other);
    if (stream) (*stream)->abort();
    collect();
    return stream.has_value();
  }
  IpAddress router() {
    IpAddress last;
    while (const auto change = stack.take_router_change()) last = change->now;
    return last;
  }
};

std::size_t solicitations(const RoutedPeer& peer) {
  return static_cast<std::size_t>(std::ranges::count_if(peer.others, [](const Bytes& bytes) {
    RxFrame rx;
    rx.head = bytes;
    const wire::ParsedFrame parsed = wire::parse_frame(rx);
    return parsed.ip.destination == wire::kAllRouters && parsed.ip.hop_limit == 255 &&
           parsed.ip.source == IpAddress() && wire::verify_icmp_checksums(rx, parsed) &&
           bytes[parsed.payload_offset] == std::byte{133};
  }));
}

TEST(RouterDiscovery, SolicitsThreeTimesFourSecondsApart) {
  RoutedPeer peer;
  std::vector<Duration> at;
  for (const TimePoint start = peer.now; peer.now < start + 20s; peer.pass(100ms)) {
    peer.stack.on_timers(peer.now);
    peer.collect();
    if (solicitations(peer) > 0) at.push_back(peer.now - start);
  }
  EXPECT_EQ(at, (std::vector<Duration>{0s, 4s, 8s}));
  EXPECT_TRUE(peer.stack.awaits_router());
}

TEST(RouterDiscovery, AnAdvertisementEndsTheSolicitations) {
  RoutedPeer peer;
  EXPECT_FALSE(peer.reaches_others());
  peer.advertise(kRouterA);
  EXPECT_FALSE(peer.stack.awaits_router());
  EXPECT_EQ(peer.router(), kRouterA);
  EXPECT_TRUE(peer.reaches_others());
  for (int i = 0; i < 100; ++i) {
    peer.pass(100ms);
    peer.collect();
    EXPECT_EQ(solicitations(peer), 0U);
  }
}

TEST(RouterDiscovery, ConnectionsWithOtherNetworksGoThroughTheRouter) {
  RoutedPeer peer;
  peer.comes_up(kRouterA, kMacA);
  peer.open();
  peer.write(1000);
  EXPECT_EQ(peer.run(10ms, {}), std::vector{kMacA});
}

TEST(RouterDiscovery, ALifetimeEndsTheServiceAndNoConnection) {
  RoutedPeer peer;
  peer.advertise(kRouterA, 30);
  EXPECT_EQ(peer.asked(), std::vector{kRouterA});
  peer.answers(kRouterA, kMacA);
  peer.open();
  EXPECT_EQ(peer.router(), kRouterA);
  peer.pass(29s);
  EXPECT_TRUE(peer.reaches_others());
  peer.pass(2s);
  peer.stack.on_timers(peer.now);
  EXPECT_FALSE(peer.reaches_others());
  EXPECT_EQ(peer.router(), IpAddress());
  EXPECT_TRUE(peer.stack.awaits_router()) << "and solicits";
  EXPECT_FALSE(peer.user.failed);
  peer.advertise(kRouterA, 30);
  EXPECT_TRUE(peer.reaches_others());
}

TEST(RouterDiscovery, ARouterMayEndItsService) {
  RoutedPeer peer;
  peer.comes_up(kRouterA, kMacA);
  peer.comes_up(kRouterB, kMacB);
  EXPECT_EQ(peer.router(), kRouterA);
  peer.open();
  peer.advertise(kRouterA, 0);
  EXPECT_EQ(peer.router(), kRouterB);
  peer.run(2s, {{kRouterB, kMacB}});
  peer.write(1000);
  EXPECT_EQ(peer.run(1ms, {}), std::vector{kMacB}) << "open connections follow";
}

TEST(RouterDiscovery, ConnectionsLeaveASilentRouterForOneThatAnswers) {
  RoutedPeer peer;
  peer.comes_up(kRouterA, kMacA);
  peer.comes_up(kRouterB, kMacB);
  peer.pass(60s);
  peer.open();
  peer.write(1000);
  const std::vector<MacAddress> to = peer.run(4s, {{kRouterB, kMacB}});
  ASSERT_FALSE(to.empty());
  EXPECT_EQ(to.front(), kMacA);
  EXPECT_EQ(to.back(), kMacB);
  EXPECT_EQ(peer.router(), kRouterB);
}

// One of two routers is forged, or both are dead: none proves that it is alive.
TEST(RouterDiscovery, ConnectionsStayWhileNoOtherRouterAnswers) {
  RoutedPeer peer;
  peer.comes_up(kRouterA, kMacA);
  peer.open();
  peer.advertise(kRouterB);
  peer.write(1000);
  for (const MacAddress& mac : peer.run(6s, {})) EXPECT_EQ(mac, kMacA);
  peer.advertise(kRouterB);
  peer.answers(kRouterA, kMacA);
  EXPECT_EQ(peer.run(1s, {{kRouterA, kMacA}}).size(), 0U) << "between two timeouts";
}

// It answered long ago, and has died since.
TEST(RouterDiscovery, AnOldAnswerProvesNothing) {
  RoutedPeer peer;
  peer.comes_up(kRouterA, kMacA);
  peer.comes_up(kRouterB, kMacB);
  peer.pass(60s);
  peer.open();
  peer.write(1000);
  for (const MacAddress& mac : peer.run(6s, {})) EXPECT_EQ(mac, kMacA);
}

TEST(RouterDiscovery, APreferredRouterIsTakenOnceItAnswers) {
  RoutedPeer peer;
  peer.comes_up(kRouterA, kMacA);
  EXPECT_EQ(peer.router(), kRouterA);
  peer.advertise(kRouterB, 1800, RouterPreference::kHigh);
  EXPECT_EQ(peer.router(), IpAddress()) << "no change";
  EXPECT_EQ(peer.asked(), std::vector{kRouterB});
  peer.answers(kRouterB, kMacB);
  EXPECT_EQ(peer.router(), kRouterB);
  peer.comes_up({0xfe80ULL << 48, 0xc}, kMacB, RouterPreference::kLow);
  EXPECT_EQ(peer.router(), IpAddress()) << "no change";
}

TEST(RouterDiscovery, ForgedAdvertisementsAreIgnored) {
  RoutedPeer peer;
  const Bytes good = advertisement_of(1800, RouterPreference::kHigh);
  peer.arrives(good, kRouterA, wire::kAllNodes, 254);
  peer.arrives(good, {0xfd00ULL << 48, 7});
  Bytes with_option = good;
  with_option.resize(good.size() + 8);  // Of length 0.
  peer.arrives(with_option, kRouterA);
  EXPECT_EQ(peer.stack.counters().rx_malformed, 3U);
  EXPECT_TRUE(peer.stack.awaits_router());
  EXPECT_FALSE(peer.reaches_others());
}

TEST(RouterDiscovery, AFloodOfRoutersCostsFewRequestsAndDisplacesNone) {
  RoutedPeer peer;
  peer.comes_up(kRouterA, kMacA);
  peer.comes_up(kRouterB, kMacB);
  std::size_t requests = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    peer.now += 1ms;
    peer.stack.on_timers(peer.now);
    peer.arrives(advertisement_of(1800, RouterPreference::kHigh), {0xfe80ULL << 48, 0x1000 + i});
    requests += peer.asked().size();
  }
  EXPECT_LE(requests, 200U) << "in 20 s";
  EXPECT_EQ(peer.router(), kRouterA);
  EXPECT_TRUE(peer.reaches_others());
  peer.advertise(kRouterA, 0);
  EXPECT_EQ(peer.router(), kRouterB);
}

TEST(RouterDiscovery, WithAConfiguredGatewayAdvertisementsAreIgnored) {
  StackConfig config = test_config(/*is_ipv6=*/true);
  config.gateway = kRouterA;
  Peer peer(config);
  const auto frame =
      icmpv6_from_peer(advertisement_of(1800, RouterPreference::kHigh), kRouterB, wire::kAllNodes);
  peer.stack.on_frames(peer.now, std::span(&frame->view, 1));
  EXPECT_FALSE(peer.stack.take_router_change());
  EXPECT_FALSE(peer.stack.awaits_router());
}

}  // namespace
}  // namespace ztcp::tcp::test
