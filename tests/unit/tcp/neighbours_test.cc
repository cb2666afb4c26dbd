// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/neighbours.h"

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

constexpr MacAddress kUs{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kThem{{2, 0, 0, 0, 0, 2}};
constexpr MacAddress kMoved{{2, 0, 0, 0, 0, 3}};
const Ipv4Prefix kAddress = *parse_ipv4_prefix("10.0.0.1/24");
const Ipv4Address kPeer = *parse_ipv4("10.0.0.2");
const Ipv4Address kGateway = *parse_ipv4("10.0.0.254");
const Ipv4Address kFar = *parse_ipv4("192.168.1.1");

wire::ArpPacket reply(Ipv4Address from, MacAddress mac) {
  return {wire::ArpOperation::kReply, mac, from, kUs, kAddress.address};
}

TEST(Neighbours, RoutesDirectlyOrByTheGateway) {
  Neighbours n(kUs, kAddress, kGateway);
  EXPECT_EQ(n.next_hop(kPeer), kPeer);
  EXPECT_EQ(n.next_hop(kFar), kGateway);
  EXPECT_EQ(Neighbours(kUs, kAddress, {}).next_hop(kFar), std::nullopt);
}

// Clouds hand out /32: everything goes by a gateway, which is on the link though no prefix says so.
TEST(Neighbours, LoneAddressReachesAGatewayOutsideItsPrefix) {
  Neighbours n(kUs, *parse_ipv4_prefix("10.0.0.1/32"), kFar);
  EXPECT_EQ(n.next_hop(kPeer), kFar);
  EXPECT_EQ(n.next_hop(kAddress.address), kAddress.address);
  EXPECT_EQ(n.find(kAddress.address), kUs);
}

TEST(Neighbours, AsksAndLearns) {
  Neighbours n(kUs, kAddress, {});
  TimePoint now{1h};
  n.resolve(now, kPeer);
  n.resolve(now, kPeer);
  MacAddress to;
  const auto request = n.take_request(to);
  ASSERT_TRUE(request);
  EXPECT_EQ(to, kBroadcastMac);
  EXPECT_EQ(request->target_ip, kPeer);
  EXPECT_EQ(request->sender_ip, kAddress.address);
  EXPECT_FALSE(n.has_request());
  bool answer = true;
  const auto change = n.on_arp(reply(kPeer, kThem), answer);
  EXPECT_FALSE(answer);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->mac, kThem);
  EXPECT_EQ(n.find(kPeer), kThem);
  EXPECT_EQ(n.next_deadline(), kNever);
}

TEST(Neighbours, GivesUpAfterSixRequests) {
  Neighbours n(kUs, kAddress, {});
  TimePoint now{1h};
  const TimePoint start = now;
  n.resolve(now, kPeer);
  int requests = 0;
  std::optional<Ipv4Address> lost;
  while (!lost) {
    MacAddress to;
    while (n.take_request(to)) ++requests;
    ASSERT_NE(n.next_deadline(), kNever);
    now = n.next_deadline();
    lost = n.on_timers(now);
  }
  EXPECT_EQ(lost, kPeer);
  EXPECT_EQ(requests, Neighbours::kMaxRequests);
  EXPECT_EQ(now - start, 6300ms);
  n.resolve(now, kPeer);
  EXPECT_TRUE(n.has_request()) << "and may be asked for again";
}

TEST(Neighbours, AnswersThoseWhoAskForUs) {
  Neighbours n(kUs, kAddress, {});
  bool answer = false;
  n.on_arp({wire::ArpOperation::kRequest, kThem, kPeer, {}, kAddress.address}, answer);
  EXPECT_TRUE(answer);
  EXPECT_EQ(n.find(kPeer), kThem) << "RFC 826: who asks for us will be answered";
  n.on_arp({wire::ArpOperation::kRequest, kThem, kPeer, {}, kGateway}, answer);
  EXPECT_FALSE(answer);
}

TEST(Neighbours, GratuitousArpMovesOnlyKnownNeighbours) {
  Neighbours n(kUs, kAddress, {});
  bool answer = false;
  const wire::ArpPacket announcement{wire::ArpOperation::kRequest, kThem, kPeer, {}, kPeer};
  EXPECT_FALSE(n.on_arp(announcement, answer));
  EXPECT_EQ(n.find(kPeer), std::nullopt) << "strangers don't fill the table";
  n.suggest(kPeer, kThem);
  const auto change = n.on_arp({wire::ArpOperation::kRequest, kMoved, kPeer, {}, kPeer}, answer);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->mac, kMoved);
  EXPECT_FALSE(n.on_arp({wire::ArpOperation::kReply, kMoved, kAddress.address, {}, kPeer}, answer))
      << "our own address is no neighbour";
}

TEST(Neighbours, ConfirmsUnicastAndKeepsTheOldAnswerMeanwhile) {
  Neighbours n(kUs, kAddress, {});
  TimePoint now{1h};
  n.suggest(kPeer, kThem);
  n.confirm(now, kPeer);
  MacAddress to;
  ASSERT_TRUE(n.take_request(to));
  EXPECT_EQ(to, kThem);
  while (n.next_deadline() != kNever) {
    now = n.next_deadline();
    EXPECT_EQ(n.on_timers(now), std::nullopt);
    if (n.take_request(to)) {
      EXPECT_EQ(to, kBroadcastMac);
    }
  }
  EXPECT_EQ(n.find(kPeer), kThem);
}

}  // namespace
}  // namespace ztcp::tcp
