// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/rx_places.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

class RxPlacesTest : public AcceptorTest {
 protected:
  struct Places final : RxPlaces {
    bool take(std::uint32_t queue, std::uint32_t tries) override {
      asked.emplace_back(queue, tries);
      if (queue == crowded && tries <= 2) return false;
      ++flows[queue];
      return true;
    }
    void take_back(std::uint32_t queue) override { ++flows[queue]; }
    void give_back(std::uint32_t queue) override { --flows[queue]; }

    std::optional<std::uint32_t> crowded;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> asked;
    std::map<std::uint32_t, int> flows;
  };

  void SetUp() override { start(); }
  void start(const ClusterKey& key = {}) {
    make(key);
    acceptor->spread_over(places);
  }
  void TearDown() override {
    sessions.clear();
    acceptor.reset();
  }
  Peer& greet_by(std::optional<std::uint32_t> queue, const Hello& h) {
    Peer& peer = connect(/*has_spare=*/true, queue);
    peer.preamble();
    peer.say(h);
    return peer;
  }
  static Hello again(std::uint32_t epoch) {
    Hello h = hello(5, epoch);
    h.is_new = true;
    return h;
  }

  Places places;
};

TEST_F(RxPlacesTest, AFlowOnACrowdedQueueDialsAgain) {
  places.crowded = 7;
  const auto refusal = greet_by(7, hello(5)).refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kOtherQueue);
  EXPECT_TRUE(sessions.empty());
  EXPECT_TRUE(accept_of(greet_by(8, again(2))));
  EXPECT_EQ(greet_by(7, hello(5, 1, 2)).reason(), Reason::kOtherQueue) << "a further flow";
  EXPECT_TRUE(accept_of(greet_by(9, hello(5, 2, 2))));
  EXPECT_EQ(places.flows[7], 0);
  EXPECT_EQ(places.flows[8], 1);
  EXPECT_EQ(places.flows[9], 1);
  EXPECT_EQ(acceptor->counters().refused_rx_queue, 2U);
  EXPECT_EQ(acceptor->counters().refused_queue, 2U);
}

// A refused flow ends like this, and it is no failure.
TEST_F(RxPlacesTest, ARefusedSenderResetsItsStream) {
  places.crowded = 7;
  greet_by(7, hello(5)).events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  EXPECT_EQ(acceptor->counters().refused_gone, 1U);
  greet_by(7, hello(6)).events->on_closed(now);
  greet_by(8, hello(7)).events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  EXPECT_EQ(acceptor->counters().refused_gone, 1U);
}

// Its epoch is the number of its dials.
TEST_F(RxPlacesTest, AFlowWithoutABetterQueueIsAccepted) {
  places.crowded = 7;
  EXPECT_EQ(greet_by(7, again(1)).reason(), Reason::kOtherQueue);
  EXPECT_EQ(greet_by(7, again(2)).reason(), Reason::kOtherQueue);
  EXPECT_TRUE(accept_of(greet_by(7, again(3))));
  EXPECT_EQ(places.asked.back(), std::pair(7U, 3U));
  EXPECT_EQ(places.flows[7], 1);
}

// That it is up again matters more than the queue; it counts for its present queue.
TEST_F(RxPlacesTest, AResumedFlowIsAcceptedOnAnyQueue) {
  ASSERT_TRUE(accept_of(greet_by(8, hello(5))));
  ASSERT_TRUE(accept_of(greet_by(9, hello(5, 1, 2))));
  places.crowded = 7;
  const auto asked = places.asked.size();
  EXPECT_TRUE(accept_of(greet_by(7, hello(5, 2))));
  EXPECT_TRUE(accept_of(greet_by(7, hello(5, 2, 2))));
  EXPECT_TRUE(accept_of(greet_by(7, again(3)))) << "our accept got lost";
  acceptor->flush();
  EXPECT_EQ(places.asked.size(), asked);
  EXPECT_EQ(places.flows[7], 2);
  EXPECT_EQ(places.flows[8], 0);
  EXPECT_EQ(places.flows[9], 0);
}

TEST_F(RxPlacesTest, AnEndedFlowGivesItsPlaceBack) {
  Peer& lost = greet_by(8, hello(5));
  greet_by(8, hello(6));
  greet_by(9, hello(6, 1, 1));
  EXPECT_EQ(places.flows[8], 2);
  lost.events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  acceptor->flush();
  EXPECT_EQ(places.flows[8], 1);
  sessions.at(1)->abort();
  acceptor->flush();
  EXPECT_EQ(places.flows[8], 0);
  EXPECT_EQ(places.flows[9], 0);
  greet_by(8, hello(7));
  acceptor.reset();
  EXPECT_EQ(places.flows[8], 0) << "and with the acceptor";
}

// Refused for another reason, or by its listener.
TEST_F(RxPlacesTest, ARefusedFlowHasNoPlace) {
  Hello stranger = hello(5);
  stranger.cookie = kOtherCookie;
  EXPECT_EQ(greet_by(8, stranger).reason(), Reason::kUnknownCookie);
  EXPECT_TRUE(places.asked.empty());
  refuse_sessions = true;
  greet_by(8, hello(5));
  acceptor->flush();
  EXPECT_EQ(places.flows[8], 0);
}

TEST_F(RxPlacesTest, AFlowOnAnUnknownQueueIsAccepted) {
  EXPECT_TRUE(accept_of(greet_by(std::nullopt, hello(5))));
  EXPECT_TRUE(places.asked.empty());
}

// Small messages and credit are no load.
TEST_F(RxPlacesTest, AFirstFlowWithoutBulkIsAcceptedOnAnyQueue) {
  settings.keeps_first_flow_free = true;
  start();
  places.crowded = 7;
  EXPECT_TRUE(accept_of(greet_by(7, hello(5))));
  EXPECT_TRUE(places.asked.empty());
  EXPECT_EQ(greet_by(7, hello(5, 1, 1)).reason(), Reason::kOtherQueue);
  Hello alone = hello(6);
  alone.flows_wanted = 1;
  EXPECT_EQ(greet_by(7, alone).reason(), Reason::kOtherQueue) << "it has no other flow";
}

TEST_F(RxPlacesTest, WithAKeyThePlaceIsTakenAfterTheProof) {
  start(kKey);
  places.crowded = 7;
  Hello h = hello(5);
  h.has_key = true;
  Peer& peer = greet_by(7, h);
  EXPECT_TRUE(places.asked.empty());
  auto records = peer.stream.records();
  ASSERT_EQ(records.size(), 1U);
  const auto challenge = decode_challenge(records[0].body);
  ASSERT_TRUE(challenge);
  peer.say(Proof{sender_mac(kKey, h, challenge->nonce)});
  EXPECT_EQ(peer.reason(), Reason::kOtherQueue);
}

TEST(RxPlace, IsGivenBackOnce) {
  struct Counting final : RxPlaces {
    bool take(std::uint32_t, std::uint32_t) override { return true; }
    void take_back(std::uint32_t) override {}
    void give_back(std::uint32_t queue) override { given_back.push_back(queue); }
    std::vector<std::uint32_t> given_back;
  } places;
  {
    RxPlace one(places, 1);
    RxPlace other(std::move(one));
    RxPlace third(places, 2);
    third = std::move(other);
    EXPECT_EQ(places.given_back, std::vector<std::uint32_t>{2});
  }
  EXPECT_EQ(places.given_back, (std::vector<std::uint32_t>{2, 1}));
}

}  // namespace
}  // namespace ztcp::msg
