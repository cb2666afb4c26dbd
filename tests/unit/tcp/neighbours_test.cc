// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/neighbours.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

constexpr MacAddress kUs{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kThem{{2, 0, 0, 0, 0, 2}};
constexpr MacAddress kMoved{{2, 0, 0, 0, 0, 3}};
constexpr MacAddress kForger{{2, 0, 0, 0, 0, 0x66}};
const Ipv4Prefix kAddress = *parse_ipv4_prefix("10.0.0.1/16");
const Ipv4Address kPeer = *parse_ipv4("10.0.0.2");
const Ipv4Address kGateway = *parse_ipv4("10.0.0.254");
const Ipv4Address kFar = *parse_ipv4("192.168.1.1");

constexpr std::uint32_t kUsers = 8;

class NeighboursTest : public testing::Test {
 protected:
  struct Request {
    TimePoint at;
    MacAddress to;
    Ipv4Address whom;
  };

  bool hear(wire::ArpOperation operation, Ipv4Address from, MacAddress mac, Ipv4Address to) {
    bool reply = false;
    change = n.on_arp(now, {operation, mac, from, {}, to}, reply);
    if (change) {
      changed.clear();
      n.for_each_user(*change, [&](std::uint32_t user) { changed.push_back(user); });
    }
    return reply;
  }
  bool answer(Ipv4Address from, MacAddress mac) {
    return hear(wire::ArpOperation::kReply, from, mac, kAddress.address);
  }
  bool claim(MacAddress mac) { return hear(wire::ArpOperation::kRequest, kPeer, mac, kPeer); }

  // Requests sent until `end`.
  std::vector<Request> requests_within(Duration span) {
    const TimePoint end = now + span;
    std::vector<Request> out;
    for (;;) {
      while (n.has_request())
        if (const auto request = n.take_request())
          out.push_back({now, request->to.value_or(kBroadcastMac), request->target.v4()});
      if (n.next_deadline() > end) break;
      now = n.next_deadline();
      n.on_timers(now);
    }
    now = end;
    return out;
  }
  void prove(std::uint32_t user, MacAddress mac = kThem) {
    n.join(user, kPeer);
    n.resolve(now, user);
    ASSERT_EQ(requests_within(0s).size(), 1U);
    answer(kPeer, mac);
    ASSERT_EQ(n.find(user), mac);
    now += 10s;
  }

  TimePoint now{1h};
  Counters counters;
  Neighbours n{kUs, kAddress, kGateway, kUsers, {42, 43}, counters};
  std::optional<Neighbours::Change> change;
  std::vector<std::uint32_t> changed;
};

TEST_F(NeighboursTest, RoutesDirectlyOrByTheGateway) {
  EXPECT_EQ(n.next_hop(kPeer), kPeer);
  EXPECT_EQ(n.next_hop(kFar), kGateway);
  EXPECT_EQ(Neighbours(kUs, kAddress, {}, 1, {42, 43}, counters).next_hop(kFar), std::nullopt);
}

TEST_F(NeighboursTest, NoRouteLeadsToAnIpv6Address) {
  EXPECT_EQ(n.next_hop(*parse_ip("2001:db8::1")), std::nullopt);
}

// Clouds assign /32: everything goes by a gateway, which is on the link though no prefix says so.
TEST_F(NeighboursTest, LoneAddressReachesAGatewayOutsideItsPrefix) {
  Neighbours lone(kUs, *parse_ipv4_prefix("10.0.0.1/32"), kFar, kUsers, {42, 43}, counters);
  EXPECT_EQ(lone.next_hop(kPeer), kFar);
  EXPECT_EQ(lone.next_hop(kAddress.address), kAddress.address);
  lone.join(3, kAddress.address);
  EXPECT_EQ(lone.find(3), kUs);
  lone.confirm(now, 3);
  EXPECT_FALSE(lone.has_request());
  lone.leave(3);
}

TEST_F(NeighboursTest, AsksAndLearns) {
  n.join(1, kPeer);
  n.join(5, kPeer);
  n.resolve(now, 1);
  n.resolve(now, 5);
  const auto request = n.take_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->to, std::nullopt) << "to all";
  EXPECT_EQ(request->target, IpAddress(kPeer));
  EXPECT_FALSE(n.has_request());
  EXPECT_EQ(n.find(1), std::nullopt);
  EXPECT_FALSE(answer(kPeer, kThem));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->mac, kThem);
  EXPECT_EQ(changed, (std::vector<std::uint32_t>{5, 1}));
  EXPECT_EQ(n.find(1), kThem);
  EXPECT_EQ(n.find(5), kThem);
  EXPECT_EQ(n.next_deadline(), kNever);
}

// The connection limits its own wait: its link may come up late.
TEST_F(NeighboursTest, ANeighbourWithAWaitingUserIsAskedUntilItAnswers) {
  n.join(0, kPeer);
  n.resolve(now, 0);
  const auto requests = requests_within(60s);
  EXPECT_GE(requests.size(), 60U);
  EXPECT_LE(requests.size(), 66U);
  for (std::size_t i = 5; i < requests.size(); ++i)
    EXPECT_GE(requests[i].at - requests[i - 1].at, 1s) << "RFC 1122: one a second";
  n.leave(0);
  EXPECT_EQ(n.next_deadline(), kNever) << "no lookup is pending any more";
  EXPECT_EQ(n.size(), 0U);
}

TEST_F(NeighboursTest, ADoubtedNeighbourIsAskedForAWhile) {
  n.join(0, kPeer);
  n.confirm(now, 0);
  EXPECT_EQ(requests_within(60s).size(), std::size_t{Neighbours::kMaxRequests});
  EXPECT_EQ(n.next_deadline(), kNever);
}

// A neighbour that announces itself during a wait is asked at once, before the next request is due.
TEST_F(NeighboursTest, AnAnnouncementDuringAWaitCausesARequestAtOnce) {
  n.join(0, kPeer);
  n.resolve(now, 0);
  requests_within(5s + 500ms);
  claim(kThem);
  EXPECT_EQ(n.find(0), std::nullopt) << "an unasked announcement is not enough";
  EXPECT_EQ(requests_within(0s).size(), 1U);
  claim(kThem);
  EXPECT_EQ(requests_within(50ms).size(), 0U) << "a flood of them is not asked for each";
}

TEST_F(NeighboursTest, AnswersRequestsForOurAddressAndLearnsNothing) {
  EXPECT_TRUE(hear(wire::ArpOperation::kRequest, kPeer, kForger, kAddress.address));
  EXPECT_EQ(n.size(), 0U);
  n.join(0, kPeer);
  EXPECT_EQ(n.find(0), std::nullopt);
  EXPECT_TRUE(hear(wire::ArpOperation::kRequest, kPeer, kForger, kAddress.address));
  EXPECT_EQ(n.find(0), std::nullopt) << "a request adds no address to an entry either";
  EXPECT_FALSE(hear(wire::ArpOperation::kRequest, kPeer, kThem, kGateway));
}

TEST_F(NeighboursTest, AnUnsolicitedReplyIsAClaim) {
  prove(0);
  answer(kPeer, kForger);
  EXPECT_FALSE(change);
  EXPECT_EQ(n.find(0), kThem);
}

TEST_F(NeighboursTest, GroupAddressesAndOurOwnMacAreRefused) {
  prove(0);
  n.join(1, kGateway);
  n.resolve(now, 1);
  requests_within(0s);
  for (const MacAddress& bad :
       {kBroadcastMac, MacAddress{{1, 0, 0x5e, 0, 0, 1}}, MacAddress{}, kUs})
    for (const Ipv4Address from : {kPeer, kGateway}) {
      EXPECT_FALSE(hear(wire::ArpOperation::kRequest, from, bad, kAddress.address))
          << "and an answer to it would reach more than one";
      answer(from, bad);
      EXPECT_FALSE(change);
    }
  EXPECT_EQ(n.find(0), kThem);
  EXPECT_EQ(n.find(1), std::nullopt);
  EXPECT_EQ(counters.arp_bad_sender, 16U);
}

TEST_F(NeighboursTest, OurOwnAddressIsNoNeighbour) {
  EXPECT_FALSE(hear(wire::ArpOperation::kReply, kAddress.address, kForger, kPeer));
  EXPECT_FALSE(hear(wire::ArpOperation::kRequest, kAddress.address, kForger, kAddress.address));
  EXPECT_EQ(counters.arp_own_address_claimed, 2U);
  EXPECT_EQ(n.size(), 0U);
}

TEST_F(NeighboursTest, ADoubtIsAskedByUnicastThenByBroadcast) {
  prove(0);
  n.confirm(now, 0);
  n.confirm(now, 0);
  const auto requests = requests_within(60s);
  ASSERT_EQ(requests.size(), std::size_t{Neighbours::kMaxRequests});
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(requests[i].to, i < 2 ? kThem : kBroadcastMac) << i;
  EXPECT_LE(requests[2].at - requests[0].at, 201ms);
  EXPECT_EQ(n.find(0), kThem) << "the old answer stays in use";
}

// A virtual machine moved, or a NIC was replaced: it announces itself, and the old MAC is silent.
TEST_F(NeighboursTest, AMoveIsBelievedWhenTheOldMacIsSilent) {
  prove(0);
  n.join(1, kPeer);
  const TimePoint moved = now;
  claim(kMoved);
  EXPECT_FALSE(change);
  EXPECT_EQ(n.find(0), kThem);
  const auto requests = requests_within(210ms);
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].to, kThem);
  EXPECT_EQ(requests[2].to, kBroadcastMac);
  answer(kPeer, kMoved);
  ASSERT_TRUE(change);
  EXPECT_EQ(changed.size(), 2U);
  EXPECT_EQ(n.find(0), kMoved);
  EXPECT_LT(now - moved, 1s);
  EXPECT_EQ(counters.arp_mac_changes, 1U);
  EXPECT_EQ(counters.arp_conflicts, 0U);
}

TEST_F(NeighboursTest, AForgedClaimIsRefutedAndCounted) {
  prove(0);
  for (int i = 0; i < 1000; ++i) {
    claim(kForger);
    answer(kPeer, kForger);  // Not an answer to the request that went to kThem.
    EXPECT_EQ(n.find(0), kThem);
  }
  ASSERT_EQ(requests_within(10ms).size(), 1U) << "one question, be there ever so many claims";
  answer(kPeer, kForger);
  EXPECT_FALSE(change);
  answer(kPeer, kThem);
  EXPECT_FALSE(change);
  EXPECT_EQ(n.find(0), kThem);
  EXPECT_EQ(counters.arp_conflicts, 1U);
  EXPECT_EQ(counters.arp_mac_changes, 0U);
}

TEST_F(NeighboursTest, AFloodOfClaimsIsAskedTwiceASecond) {
  prove(0);
  std::size_t asked = 0;
  for (int i = 0; i < 10'000; ++i) {
    claim(kForger);
    for (const Request& request : requests_within(1ms)) {
      EXPECT_EQ(request.to, kThem);
      ++asked;
      answer(kPeer, kThem);
    }
  }
  EXPECT_LE(asked, 21U);
  EXPECT_GE(asked, 19U);
  EXPECT_EQ(n.find(0), kThem);
  EXPECT_GE(counters.arp_conflicts, 19U);
}

// During the flood the neighbour may still move.
TEST_F(NeighboursTest, AMoveRightAfterARefutedClaimIsNotMissed) {
  prove(0);
  claim(kForger);
  requests_within(0s);
  answer(kPeer, kThem);
  const TimePoint moved = now;
  claim(kMoved);
  bool found = false;
  while (!found && now < moved + 1s)
    for (const Request& request : requests_within(1ms))
      if (request.to == kBroadcastMac) {
        answer(kPeer, kMoved);
        found = true;
      }
  EXPECT_EQ(n.find(0), kMoved);
  EXPECT_LT(now - moved, 1s);
}

// A forged answer that arrives before the neighbour's own answer to our first request.
TEST_F(NeighboursTest, AForgedFirstAnswerIsDetected) {
  n.join(0, kPeer);
  n.resolve(now, 0);
  requests_within(0s);
  answer(kPeer, kForger);
  answer(kPeer, kThem);
  EXPECT_EQ(n.find(0), kForger);
  const TimePoint begin = now;
  while (n.find(0) != kThem && now < begin + 2s)
    for (const Request& request : requests_within(1ms))
      if (request.to == kBroadcastMac) answer(kPeer, kThem);
  EXPECT_LT(now - begin, 1s);
  EXPECT_EQ(counters.arp_mac_changes, 1U);
}

// Entries exist for users only: strangers never fill the table, and proven entries stay longest.
TEST_F(NeighboursTest, StrangersNeverEvictEntriesInUse) {
  prove(0);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const Ipv4Address stranger{0x0a000100 + i};
    hear(wire::ArpOperation::kRequest, stranger, kForger, kAddress.address);
    const std::uint32_t user = 1 + i % (kUsers - 1);
    n.leave(user);
    n.join(user, stranger);
    n.confirm(now, user);
    while (n.has_request()) n.take_request();
    if (i % 2 == 0) answer(stranger, kForger);
    ASSERT_LE(n.size(), kUsers + Neighbours::kMaxIdle);
  }
  EXPECT_EQ(n.find(0), kThem);
  n.leave(0);
  n.join(0, kPeer);
  EXPECT_EQ(n.find(0), kThem) << "the latest to go idle is the last to be forgotten";
}

TEST_F(NeighboursTest, AnUnprovenEntryIsForgottenWithItsLastUser) {
  n.join(0, kPeer);
  n.join(1, kPeer);
  n.confirm(now, 0);
  n.leave(0);
  EXPECT_EQ(n.size(), 1U);
  n.leave(1);
  EXPECT_EQ(n.size(), 0U);
  n.join(0, kGateway);
  EXPECT_FALSE(n.take_request()) << "a request of the place's former entry";
  EXPECT_EQ(n.next_deadline(), kNever);
}

}  // namespace
}  // namespace ztcp::tcp
