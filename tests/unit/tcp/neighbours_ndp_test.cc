// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Neighbours of an IPv6 address: the rules of RFC 4861 that ARP does not have. All others are in
// neighbours_test.cc.
#include <chrono>

#include <gtest/gtest.h>

#include "transport/tcp/neighbours.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

class Ndp : public testing::Test {
 protected:
  static constexpr MacAddress kUs{{2, 0, 0, 0, 0, 1}};
  static constexpr MacAddress kThem{{2, 0, 0, 0, 0, 2}};
  static constexpr MacAddress kForger{{2, 0, 0, 0, 0, 66}};
  static constexpr IpPrefix kAddress{{0xfd00ULL << 48, 1}, 64};
  static constexpr IpAddress kPeer{0xfd00ULL << 48, 2};
  static constexpr IpAddress kGateway{0xfe80ULL << 48, 0xfe};
  static constexpr std::size_t kUsers = 8;

  std::optional<Neighbours::Change> hear(const wire::NeighbourMessage& message, IpAddress source,
                                         MacAddress frame_source) {
    return n.on_message(now, message, source, frame_source, reply);
  }
  bool advertise(std::optional<MacAddress> mac, bool solicited, bool overrides,
                 MacAddress frame_source = kThem) {
    return hear({.is_advertisement = true,
                 .target = kPeer,
                 .mac = mac,
                 .is_router = false,
                 .is_solicited = solicited,
                 .overrides = overrides},
                kPeer, frame_source)
        .has_value();
  }
  void prove() {
    n.join(0, kPeer);
    n.resolve(now, 0);
    ASSERT_TRUE(n.take_request());
    ASSERT_TRUE(advertise(kThem, true, true));
    ASSERT_EQ(n.find(0), kThem);
    now += 10s;
  }
  // Asks at the known address.
  void ask() {
    n.confirm(now, 0);
    const auto request = n.take_request();
    ASSERT_TRUE(request);
    ASSERT_EQ(request->to, kThem);
  }
  // Lets the unicast requests go unanswered, so that the group is asked.
  void ask_all() {
    ask();
    for (;;) {
      now = n.next_deadline();
      n.on_timers(now);
      const auto request = n.take_request();
      if (request && !request->to) break;
    }
  }

  TimePoint now{1h};
  Counters counters;
  Neighbours n{kUs, kAddress, kGateway, kUsers, {42, 43}, counters};
  bool reply = false;
};

TEST_F(Ndp, Routes) {
  EXPECT_EQ(n.next_hop(kPeer), kPeer);
  EXPECT_EQ(n.next_hop(*parse_ip("fe80::7")), *parse_ip("fe80::7")) << "on this link";
  EXPECT_EQ(n.next_hop(*parse_ip("fd01::7")), kGateway);
  EXPECT_EQ(n.next_hop(*parse_ip("10.0.0.1")), std::nullopt);
  const Neighbours none(kUs, kAddress, {}, kUsers, {42, 43}, counters);
  EXPECT_EQ(none.next_hop(*parse_ip("fd01::7")), std::nullopt);
  const Neighbours local(kUs, *parse_ip_prefix("fe80::1/64"), kGateway, kUsers, {42, 43}, counters);
  EXPECT_EQ(local.next_hop(kGateway), kGateway);
  EXPECT_EQ(local.next_hop(*parse_ip("fd01::7")), std::nullopt) << "not forwarded";
}

TEST_F(Ndp, AsksTheGroupFirstAndLearns) { prove(); }

TEST_F(Ndp, AnUnsolicitedAdvertisementProvesNothing) {
  n.join(0, kPeer);
  n.resolve(now, 0);
  ASSERT_TRUE(n.take_request());
  EXPECT_FALSE(advertise(kForger, /*solicited=*/false, true));
  EXPECT_EQ(n.find(0), std::nullopt);
  EXPECT_FALSE(advertise(std::nullopt, true, true)) << "it names no MAC";
  EXPECT_EQ(n.find(0), std::nullopt);
  EXPECT_TRUE(advertise(kThem, true, false)) << "nothing is overridden";
}

TEST_F(Ndp, AnAnswerThatWasNotAskedForProvesNothing) {
  prove();
  EXPECT_FALSE(advertise(kForger, true, true));
  EXPECT_EQ(n.find(0), kThem);
}

// RFC 4861 section 7.2.4: an answer to a unicast request may leave out the MAC, as Linux does.
TEST_F(Ndp, AnAnswerWithoutMacConfirmsTheKnownOne) {
  prove();
  ask();
  EXPECT_FALSE(advertise(std::nullopt, true, false, kForger));
  EXPECT_NE(n.next_deadline(), kNever) << "not from the known MAC: still asking";
  EXPECT_FALSE(advertise(std::nullopt, true, false, kThem)) << "no change";
  EXPECT_EQ(n.next_deadline(), kNever);
  EXPECT_EQ(n.find(0), kThem);
}

TEST_F(Ndp, ANewMacNeedsTheOverrideFlag) {
  prove();
  ask_all();
  EXPECT_FALSE(advertise(kForger, true, /*overrides=*/false));
  EXPECT_EQ(n.find(0), kThem);
  EXPECT_TRUE(advertise(kForger, true, /*overrides=*/true));
  EXPECT_EQ(n.find(0), kForger);
  EXPECT_EQ(counters.arp_mac_changes, 1U);
}

TEST_F(Ndp, SolicitationsAreClaimsAndAreAnswered) {
  prove();
  EXPECT_FALSE(hear({.target = kAddress.address, .mac = kForger}, kPeer, kForger));
  EXPECT_TRUE(reply);
  EXPECT_EQ(n.find(0), kThem);
  const auto request = n.take_request();
  ASSERT_TRUE(request) << "the claim is checked";
  EXPECT_EQ(request->to, kThem);
  EXPECT_FALSE(hear({.target = kPeer, .mac = kThem}, kGateway, kThem));
  EXPECT_FALSE(reply) << "not our address";
}

TEST_F(Ndp, BadSendersAreCounted) {
  n.join(0, kPeer);
  for (const MacAddress bad : {MacAddress{}, kUs, MacAddress{{0x33, 0x33, 0, 0, 0, 1}}}) {
    hear({.target = kAddress.address, .mac = bad}, kPeer, kThem);
    EXPECT_FALSE(reply);
  }
  EXPECT_EQ(counters.arp_bad_sender, 3U);
  hear({.target = kPeer, .mac = kForger}, kAddress.address, kForger);
  EXPECT_EQ(counters.arp_own_address_claimed, 1U);
}

}  // namespace
}  // namespace ztcp::tcp
