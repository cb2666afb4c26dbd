// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Acceptors of a NIC's queues.
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"
#include "transport/msg/reason.h"
#include "transport/msg/session_places.h"

namespace ztcp::msg {
namespace {

// Each session is on one of them, until its end is forgotten there.
class SharedAcceptors : public AcceptorTest {
 protected:
  struct Places final : SessionPlaces {
    std::optional<std::uint8_t> find(std::uint64_t session) override {
      const auto found = of.find(session);
      return found == of.end() ? std::nullopt : std::optional(found->second);
    }
    bool take(std::uint64_t session, std::uint8_t place) override {
      return of.emplace(session, place).first->second == place;
    }
    void forget(std::uint64_t session, std::uint8_t place) override {
      const auto found = of.find(session);
      if (found != of.end() && found->second == place) of.erase(found);
    }
    std::optional<std::uint8_t> better_place(std::uint8_t place, std::uint32_t tries) override {
      return place != better && tries <= 3 ? better : std::nullopt;
    }
    void note_full(std::uint8_t place, bool full) override { is_full[place] = full; }
    std::optional<std::uint8_t> place_with_room(std::uint8_t place) override {
      for (const auto other : {place, static_cast<std::uint8_t>(1 - place)})
        if (!is_full[other]) return other;
      return std::nullopt;
    }
    void note_begun(std::uint8_t place, std::uint32_t) override { ++count[place]; }
    void note_ended(std::uint8_t place) override { --count[place]; }

    std::map<std::uint64_t, std::uint8_t> of;
    std::array<int, 2> count{};
    std::array<bool, 2> is_full{};
    std::optional<std::uint8_t> better;
  };

  void SetUp() override {
    for (std::uint8_t place = 0; place < 2; ++place) {
      make();
      acceptor->share(places, place);
      both[place] = std::move(acceptor);
    }
    on(0);
  }
  void TearDown() override {
    sessions.clear();
    on(0);
  }
  // The following calls use that acceptor.
  void on(std::size_t place) {
    if (acceptor != nullptr) both[here] = std::move(acceptor);
    here = place;
    acceptor = std::move(both[place]);
  }

  Places places;
  std::array<std::unique_ptr<Acceptor>, 2> both;
  std::size_t here = 0;
};

TEST_F(SharedAcceptors, AFlowOfAnotherQueuesSessionIsToldTheQueue) {
  EXPECT_TRUE(accept_of(greet(hello(5))));
  on(1);
  const auto extra = greet(hello(5, 1, 2)).refusal();
  ASSERT_TRUE(extra);
  EXPECT_EQ(extra->reason, Reason::kOtherQueue);
  EXPECT_EQ(extra->ours, 0U);
  EXPECT_EQ(greet(hello(5, 2)).reason(), Reason::kOtherQueue) << "a flow that comes back";
  Hello again = hello(5, 2);
  again.is_new = true;
  EXPECT_EQ(greet(again).reason(), Reason::kOtherQueue) << "our accept got lost";
  Hello last = hello(5, 2);
  last.process_ends = true;
  EXPECT_EQ(greet(last).reason(), Reason::kOtherQueue);
  EXPECT_EQ(acceptor->counters().refused_queue, 4U);
  EXPECT_EQ(sessions.size(), 1U);
  EXPECT_TRUE(accept_of(greet(hello(6)))) << "another session may be here";
  on(0);
  EXPECT_TRUE(accept_of(greet(hello(5, 1, 2))));
  EXPECT_TRUE(accept_of(greet(hello(5, 2))));
}

TEST_F(SharedAcceptors, TheEndOfASessionIsRememberedByItsAcceptor) {
  greet(hello(5)).events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  greet(hello(6)).events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  sessions[0]->close();
  sessions[1]->abort();
  sessions.clear();
  on(1);
  EXPECT_EQ(greet(hello(5, 2)).reason(), Reason::kOtherQueue);
  EXPECT_EQ(greet(hello(6, 2)).reason(), Reason::kUnknownSession);
  on(0);
  EXPECT_EQ(greet(hello(5, 2)).reason(), Reason::kClosed);
  for (std::uint64_t id = 100; id < 100 + 4096; ++id) {
    greet(hello(id)).events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
    sessions[0]->close();
    sessions.clear();
  }
  EXPECT_EQ(places.of.size(), 4096U) << "a forgotten entry has no place";
  on(1);
  EXPECT_EQ(greet(hello(5, 3)).reason(), Reason::kUnknownSession);
}

TEST_F(SharedAcceptors, AFullAcceptorSendsANewSessionToOneWithRoom) {
  acceptor->set_other_sessions(SessionSettings{}.max_sessions);
  const auto refusal = greet(hello(5)).refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kOtherQueue);
  EXPECT_EQ(refusal->ours, 1U);
  on(1);
  Hello again = hello(5, 2);
  again.is_new = true;
  EXPECT_TRUE(accept_of(greet(again)));
  acceptor->set_other_sessions(SessionSettings{}.max_sessions);
  on(0);
  EXPECT_EQ(greet(hello(6)).reason(), Reason::kFull);
  acceptor->set_other_sessions(0);
  EXPECT_TRUE(accept_of(greet(hello(7))));
}

TEST_F(SharedAcceptors, SessionsOfAllCountInOneBudget) {
  struct Budget final : SessionBudget {
    std::size_t most() const override { return 2; }
    std::size_t left() const override { return 2 - taken; }
    void add() override { ++taken; }
    void remove(std::size_t count) override { taken -= count; }
    std::size_t taken = 0;
  } budget;
  for (const std::size_t place : {0U, 1U}) {
    on(place);
    acceptor->count_in(budget);
    EXPECT_TRUE(accept_of(greet(hello(5 + place))));
  }
  const auto refusal = greet(hello(8)).refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kFull);
  EXPECT_EQ(refusal->ours, 2U);
  sessions.clear();
  EXPECT_EQ(budget.left(), 2U);
  EXPECT_TRUE(accept_of(greet(hello(9))));
  sessions.clear();
  acceptor.reset();
  both = {};
}

TEST_F(SharedAcceptors, ANewSessionIsToldOfABetterPlace) {
  places.better = 1;
  const auto refusal = greet(hello(5)).refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kOtherQueue);
  EXPECT_EQ(refusal->ours, 1U);
  EXPECT_TRUE(sessions.empty());
  Hello again = hello(5, 2);
  again.is_new = true;
  on(1);
  EXPECT_TRUE(accept_of(greet(again)));
  EXPECT_EQ(places.count, (std::array{0, 1}));
  // It is there now, whether better or not.
  places.better = 0;
  EXPECT_TRUE(accept_of(greet(hello(5, 1, 2))));
  EXPECT_TRUE(accept_of(greet(hello(5, 3))));
  sessions.clear();
  EXPECT_EQ(places.count, (std::array{0, 0}));
}

// No port leads there: it is accepted anyway.
TEST_F(SharedAcceptors, ASessionWithoutABetterPlaceStays) {
  places.better = 1;
  Hello again = hello(5);
  for (again.epoch = 1; again.epoch <= 3; ++again.epoch)
    EXPECT_EQ(greet(again).reason(), Reason::kOtherQueue) << again.epoch;
  EXPECT_TRUE(accept_of(greet(again)));
}

}  // namespace
}  // namespace ztcp::msg
