// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The address that a router's advertisements give: which prefix is taken, its lifetimes, forged
// advertisements, and a Stack before, with and after such an address (RFC 4862 section 5.5).
#include "transport/tcp/advertised_address.h"

#include <array>
#include <initializer_list>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/interface_identifier.h"
#include "tests/support/router_advertisement.h"
#include "tests/unit/tcp/harness.h"
#include "transport/wire/ndp.h"

namespace ztcp::tcp::test {
namespace {

using ztcp::test::kAutonomousFlag;
using ztcp::test::kOnLinkFlag;
using ztcp::test::PrefixOption;
using ztcp::test::router_advertisement;
using Kind = AddressChange::Kind;

constexpr IpAddress kRouter{0xfe80ULL << 48, 0xa};
constexpr IpAddress kPrefix{0x2001'0db8'0000'0001ULL, 0};
constexpr IpAddress kOther{0x2001'0db8'0000'0002ULL, 0};
constexpr IpAddress kOwn{kPrefix.high, 0x0000'00ff'fe00'0001ULL};  // Out of kOurMac.

struct Host {
  AdvertisedAddress address{kOurMac, /*chooses=*/true};
  TimePoint now = at(0s);

  bool hears(std::initializer_list<PrefixOption> prefixes) {
    wire::RouterAdvertisement advertisement;
    for (const PrefixOption& prefix : prefixes)
      if (const auto parsed = wire::parse_prefix_option(3, ztcp::test::prefix_option(prefix)))
        advertisement.prefixes[advertisement.prefix_count++] = *parsed;
    return address.on_advertisement(now, kRouter, advertisement);
  }
  void pass(Duration d) {
    const TimePoint end = now + d;
    while (address.next_deadline() <= end) {
      now = std::max(now, address.next_deadline());
      address.on_timers(now);
    }
    now = end;
  }
  Duration valid() const { return address.taken()->valid_until - now; }
  std::vector<Kind> changes() {
    std::vector<Kind> out;
    while (const auto change = address.take_change()) out.push_back(change->kind);
    return out;
  }
};

TEST(AdvertisedAddress, IsThePrefixAndTheMacAddress) {
  // RFC 4291 appendix A: the universal bit is inverted, ff:fe comes between the halves.
  EXPECT_EQ(address_of_mac(kPrefix, {{0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde}}),
            (IpAddress{kPrefix.high, 0x3656'78ff'fe9a'bcdeULL}));
  Host host;
  EXPECT_FALSE(host.address.is_valid());
  EXPECT_TRUE(host.hears({{.prefix = kPrefix, .valid_s = 100, .preferred_s = 50}}));
  EXPECT_TRUE(host.address.is_valid());
  EXPECT_EQ(host.address.taken()->address, (IpPrefix{kOwn, 64}));
  EXPECT_EQ(host.address.taken()->router, kRouter);
  EXPECT_EQ(host.valid(), 100s);
  EXPECT_TRUE(host.changes().empty()) << "the init line tells it";
}

// RFC 4862 section 5.5.3 a to d.
TEST(AdvertisedAddress, UnusablePrefixesGiveNone) {
  const std::array<PrefixOption, 7> unusable{{
      {.prefix = kPrefix, .flags = kOnLinkFlag},
      {.prefix = kPrefix, .length = 56},
      {.prefix = kPrefix, .length = 255},
      {.prefix = {0xfe80ULL << 48, 0}},
      {.prefix = {0xff02ULL << 48, 0}},
      {.prefix = kPrefix, .valid_s = 10, .preferred_s = 11},
      {.prefix = kPrefix, .valid_s = 0, .preferred_s = 0},
  }};
  Host host;
  for (const PrefixOption& prefix : unusable) EXPECT_FALSE(host.hears({prefix}));
  EXPECT_FALSE(host.hears({{.prefix = {0, 0}}}));
  EXPECT_FALSE(host.address.taken());
}

TEST(AdvertisedAddress, APreferredPrefixOnTheLinkComesFirst) {
  Host host;
  EXPECT_TRUE(host.hears({{.prefix = {kPrefix.high + 8, 0}, .preferred_s = 0},
                          {.prefix = {kPrefix.high + 9, 0}, .flags = kAutonomousFlag},
                          {.prefix = kPrefix},
                          {.prefix = kOther}}));
  EXPECT_EQ(host.address.taken()->address.address, kOwn);
}

TEST(AdvertisedAddress, OffTheLinkAllHostsAreBehindTheRouter) {
  Host host;
  EXPECT_TRUE(host.hears({{.prefix = kPrefix, .flags = kAutonomousFlag}}));
  EXPECT_EQ(host.address.taken()->address, (IpPrefix{kOwn, 128}));
}

TEST(AdvertisedAddress, TheFirstPrefixIsKeptAndAnotherOneToldOnce) {
  Host host;
  host.hears({{.prefix = kPrefix}});
  for (std::uint64_t i = 0; i < 10'000; ++i)
    EXPECT_FALSE(host.hears({{.prefix = {kOther.high + i, 0}}}));
  EXPECT_EQ(host.address.taken()->address.address, kOwn);
  EXPECT_EQ(host.changes(), std::vector{Kind::kOtherPrefix});
}

// RFC 4862 section 5.5.3 e.
TEST(AdvertisedAddress, AForgerCanShortenTheLifetimeToTwoHours) {
  Host host;
  host.hears({{.prefix = kPrefix, .valid_s = 86400}});
  host.pass(1h);
  EXPECT_FALSE(host.hears({{.prefix = kPrefix, .valid_s = 1, .preferred_s = 1}}));
  EXPECT_EQ(host.valid(), 2h) << "2: cut to two hours";
  host.pass(10min);
  host.hears({{.prefix = kPrefix, .valid_s = 1, .preferred_s = 1}});
  host.hears({{.prefix = kPrefix, .valid_s = 0, .preferred_s = 0}});
  EXPECT_EQ(host.valid(), 110min) << "2: ignored below";
  host.hears({{.prefix = kPrefix, .valid_s = 6601, .preferred_s = 1}});
  EXPECT_EQ(host.valid(), 6601s) << "1: longer than what is left";
  host.hears({{.prefix = kPrefix, .valid_s = 7201, .preferred_s = 1}});
  EXPECT_EQ(host.valid(), 7201s) << "1: above two hours";
  host.hears({{.prefix = kPrefix, .valid_s = 0xffffffff, .preferred_s = 0xffffffff}});
  EXPECT_GT(host.valid(), 24h * 365 * 100) << "infinite";
}

TEST(AdvertisedAddress, LifetimesEndAndMayBeRenewed) {
  Host host;
  host.hears({{.prefix = kPrefix, .valid_s = 100, .preferred_s = 50}});
  host.pass(49s);
  EXPECT_TRUE(host.changes().empty());
  host.pass(2s);
  EXPECT_TRUE(host.address.is_valid());
  EXPECT_EQ(host.changes(), std::vector{Kind::kDeprecated});
  EXPECT_FALSE(host.hears({{.prefix = kPrefix, .valid_s = 100, .preferred_s = 50}}));
  EXPECT_EQ(host.changes(), std::vector{Kind::kRenewed});
  host.pass(101s);
  EXPECT_FALSE(host.address.is_valid());
  EXPECT_EQ(host.address.next_deadline(), kNever);
  EXPECT_EQ(host.changes(), (std::vector{Kind::kDeprecated, Kind::kEnded}));
  EXPECT_TRUE(host.hears({{.prefix = kPrefix, .valid_s = 100, .preferred_s = 50}}));
  EXPECT_TRUE(host.address.is_valid());
  EXPECT_EQ(host.changes(), std::vector{Kind::kRenewed});
}

TEST(AdvertisedAddress, TheOtherStacksOfANicTakeTheFirstOnes) {
  Host first;
  AdvertisedAddress second(kOurMac, /*chooses=*/false);
  wire::RouterAdvertisement advertisement;
  advertisement.prefixes[0] = {
      .prefix = {kOther, 64}, .is_on_link = true, .valid = 1h, .preferred = 1h};
  advertisement.prefix_count = 1;
  EXPECT_FALSE(second.on_advertisement(first.now, kRouter, advertisement));
  first.hears({{.prefix = kPrefix}});
  second.adopt(*first.address.taken());
  EXPECT_FALSE(second.on_advertisement(first.now, kRouter, advertisement));
  EXPECT_EQ(second.taken()->address.address, kOwn);
}

// --- A Stack -------------------------------------------------------------------------------------

StackConfig config_without_address(std::uint8_t last_of_mac = 1) {
  StackConfig config = test_config(/*is_ipv6=*/true);
  config.mac.bytes[5] = last_of_mac;
  config.address = {IpAddress(), 64};
  config.finds_address = true;
  return config;
}

void hears(Stack& stack, TimePoint now, std::initializer_list<PrefixOption> prefixes,
           IpAddress router = kRouter) {
  const auto frame = icmpv6_from_peer(router_advertisement(prefixes), router, wire::kAllNodes);
  stack.on_frames(now, std::span(&frame->view, 1));
}

// Messages of neighbour discovery in the frames that the stack has to send.
struct Sent {
  int router_solicitations = 0;
  std::vector<IpAddress> probed;
};
Sent collect(Stack& stack, TimePoint now) {
  std::array<TxFrame, 16> out;
  Sent sent;
  stack.on_timers(now);
  const std::size_t count = stack.collect(now, out);
  for (const TxFrame& frame : std::span(out).first(count)) {
    RxFrame rx;
    rx.head = std::span(frame.header).first(frame.header_bytes);
    const wire::ParsedFrame parsed = wire::parse_frame(rx);
    const auto message = rx.head.subspan(parsed.payload_offset);
    if (wire::icmpv6_type(message) == wire::Icmpv6Type::kRouterSolicitation)
      ++sent.router_solicitations;
    const auto neighbour = wire::parse_neighbour_message(parsed.ip, message);
    if (neighbour && parsed.ip.source == IpAddress()) sent.probed.push_back(neighbour->target);
  }
  return sent;
}

TEST(StackWithoutAddress, SolicitsThenProbesTheAddressThatItTakes) {
  Stack stack(config_without_address(), {1, 2});
  TimePoint now = at(0s);
  Sent sent = collect(stack, now);
  EXPECT_EQ(sent.router_solicitations, 1);
  EXPECT_TRUE(sent.probed.empty()) << "there is none to probe";
  sent = collect(stack, now += 4s);
  EXPECT_EQ(sent.router_solicitations, 1);
  EXPECT_EQ(stack.address(), IpAddress());
  hears(stack, now, {{.prefix = kPrefix}});
  EXPECT_EQ(stack.address(), kOwn);
  EXPECT_EQ(stack.taken_address()->router, kRouter);
  EXPECT_EQ(collect(stack, now).probed, std::vector{kOwn}) << "RFC 4862 section 5.4";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(collect(stack, now += 4s).router_solicitations, 0);
}

TEST(StackWithoutAddress, ARouterWithoutAPrefixEndsNoSolicitation) {
  StackConfig config = config_without_address();
  config.finds_router = true;
  Stack stack(config, {1, 2});
  TimePoint now = at(0s);
  collect(stack, now);
  hears(stack, now, {});
  EXPECT_TRUE(stack.awaits_router()) << "it can't be asked yet";
  EXPECT_EQ(collect(stack, now += 4s).router_solicitations, 1);
  hears(stack, now, {{.prefix = kPrefix}});
  EXPECT_FALSE(stack.awaits_router());
  EXPECT_EQ(collect(stack, now += 4s).router_solicitations, 0);
}

TEST(StackWithoutAddress, NothingElseIsHeardOrSentBefore) {
  Stack stack(config_without_address(), {1, 2});
  User user;
  ASSERT_TRUE(stack.listen(kListenPort, user));
  const TimePoint now = at(0s);
  collect(stack, now);
  for (const IpAddress to : {kPeerIpv6, kRouter, kOwn, IpAddress()}) {
    const auto refused = stack.connect(now, {to, 7000}, user);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kNoRoute);
  }
  // A probe of "::", which no honest host sends.
  Bytes probe(wire::kEmittedNdpBytes);
  const IpAddress group = wire::solicited_node(IpAddress());
  probe.resize(
      wire::emit_neighbour_message({.target = IpAddress()}, IpAddress(), group, probe.data()));
  const auto frame = icmpv6_from_peer(probe, IpAddress(), group);
  stack.on_frames(now, std::span(&frame->view, 1));
  EXPECT_FALSE(stack.duplicate());
  std::array<TxFrame, 4> out;
  EXPECT_EQ(stack.collect(now, out), 0U);
}

TEST(StackWithoutAddress, ADuplicateIsNoticed) {
  Stack stack(config_without_address(), {1, 2});
  const TimePoint now = at(0s);
  hears(stack, now, {{.prefix = kPrefix}});
  collect(stack, now);
  Bytes message(wire::kEmittedNdpBytes);
  wire::emit_neighbour_message(
      {.is_advertisement = true, .target = kOwn, .mac = kPeerMac, .overrides = true}, kOwn,
      wire::kAllNodes, message.data());
  const auto frame = icmpv6_from_peer(message, kOwn, wire::kAllNodes);
  stack.on_frames(now + 10ms, std::span(&frame->view, 1));
  EXPECT_EQ(stack.duplicate(), kPeerMac);
  User user;
  const auto refused = stack.connect(now + 10ms, {{kPrefix.high, 2}, 7000}, user);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kBadConfig);
}

struct AdvertisedPair : Pair {
  AdvertisedPair() : Pair(config_without_address(1), config_without_address(3)) {}

  void both_hear(std::uint32_t valid_s) {
    for (Stack* stack : {&left, &right})
      hears(*stack, now, {{.prefix = kPrefix, .valid_s = valid_s, .preferred_s = valid_s}});
  }
  Endpoint far() const { return {right.address(), kListenPort}; }
};

TEST(StackWithoutAddress, OpenConnectionsOutliveTheAddressAndNewOnesFailByName) {
  AdvertisedPair pair;
  pair.both_hear(60);
  pair.client.stream = *pair.left.connect(pair.now, pair.far(), pair.client);
  pair.pump();
  ASSERT_TRUE(pair.client.opened);
  EXPECT_FALSE(pair.run_until([] { return false; }, 61s));
  EXPECT_TRUE(pair.left.has_lost_address());
  EXPECT_EQ(pair.left.take_address_change()->kind, Kind::kEnded);

  User other;
  const auto refused = pair.left.connect(pair.now, pair.far(), other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kNoRoute);
  EXPECT_STREQ(refused.error().where, "end of the address's lifetime");

  const Bytes bytes = pattern(100);
  ASSERT_TRUE(pair.client.stream->write(bytes, {}));
  pair.pump();
  EXPECT_EQ(pair.server.received, bytes);

  pair.both_hear(60);
  EXPECT_FALSE(pair.left.has_lost_address());
  EXPECT_TRUE(pair.left.connect(pair.now, pair.far(), other));
}

TEST(StackWithoutAddress, AConnectionToALostAddressIsRefused) {
  AdvertisedPair pair;
  pair.both_hear(60);
  EXPECT_FALSE(pair.run_until([] { return false; }, 61s));
  hears(pair.left, pair.now, {{.prefix = kPrefix}});
  pair.client.stream = *pair.left.connect(pair.now, pair.far(), pair.client);
  pair.pump();
  ASSERT_TRUE(pair.client.failed);
  EXPECT_EQ(pair.client.failed->code, Errc::kRefused);
}

}  // namespace
}  // namespace ztcp::tcp::test
