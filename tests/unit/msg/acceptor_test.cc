// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Admission, keys and limits of the acceptor.
#include "transport/msg/acceptor.h"

#include <chrono>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"

namespace ztcp::msg {
namespace {

using namespace std::chrono_literals;

// --- Admission ---------------------------------------------------------------------------------

TEST_F(AcceptorTest, AcceptsASessionAndTellsItsLimits) {
  Peer& peer = greet();
  std::vector<RecordingStream::Record> rest;
  const auto accept = accept_of(peer, &rest);
  ASSERT_TRUE(accept);
  EXPECT_EQ(accept->allowance_bytes, 128U << 10);
  EXPECT_EQ(accept->flows_granted, 4);
  EXPECT_EQ(accept->message_window, 32);
  EXPECT_EQ(accept->session, 5U);
  EXPECT_TRUE(accept->ack_is_delivery);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].header.type, RecordType::kReady);
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0]->remote().port, 4000);
}

TEST_F(AcceptorTest, AKernelMayAcknowledgeLate) {
  EXPECT_TRUE(greet().stream.expects_late_acks);
  Hello bypassing = hello(6);
  bypassing.ack_is_delivery = true;
  EXPECT_FALSE(greet(bypassing).stream.expects_late_acks);
}

TEST_F(AcceptorTest, FlowsHaveTheDscpOfTheirSession) {
  EXPECT_FALSE(greet().stream.its_dscp);
  sessions[0]->set_dscp(46);
  EXPECT_EQ(greet(hello(5, 1, 1)).stream.its_dscp, 46);
}

TEST_F(AcceptorTest, AnotherVersionIsToldBothVersions) {
  Peer& peer = connect();
  peer.preamble(3);
  const auto refusal = peer.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kVersion);
  EXPECT_EQ(refusal->ours, 2U);
  EXPECT_EQ(refusal->theirs, 3U);
  EXPECT_EQ(acceptor->counters().strangers.other_version, 1U);
}

// The refused sender reads the refusal and closes. If it does not, it is dropped after a while, and
// at once when its slot is needed: closed in order, TCP would wait for the stranger to end the
// stream.
TEST_F(AcceptorTest, RefusedStreamsStayPendingUntilTheirPeersLeave) {
  std::vector<Peer*> refused;
  Hello h = hello();
  h.cookie = kOtherCookie;
  for (int i = 0; i < 8; ++i) refused.push_back(&greet(h));
  for (Peer* peer : refused) {
    EXPECT_EQ(peer->reason(), Reason::kUnknownCookie);
    EXPECT_FALSE(peer->stream.is_left());
  }
  refused[0]->hear("whatever it says now is not heard");
  refused[0]->events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  EXPECT_TRUE(accept_of(greet())) << "in the place of the one that left";
  connect();
  connect();
  EXPECT_TRUE(refused[1]->stream.aborted);
  EXPECT_FALSE(refused[2]->stream.is_left());
  EXPECT_EQ(acceptor->counters().strangers.pushed_out, 1U);
  EXPECT_EQ(acceptor->next_deadline(), now + 2s);
  acceptor->on_timers(now + 2s);
  EXPECT_TRUE(refused[2]->stream.aborted);
  EXPECT_EQ(acceptor->counters().strangers.unknown_cookie, 8U);
  EXPECT_EQ(acceptor->counters().strangers.bad_magic + acceptor->counters().strangers.timed_out,
            0U);
}

TEST_F(AcceptorTest, AnUnknownCookieIsRefused) {
  Hello h = hello();
  h.cookie = kOtherCookie;
  EXPECT_EQ(greet(h).reason(), Reason::kUnknownCookie);
  EXPECT_EQ(acceptor->counters().strangers.unknown_cookie, 1U);

  acceptor->remove_listener(kCookie);
  EXPECT_EQ(greet().reason(), Reason::kUnknownCookie);
  EXPECT_TRUE(sessions.empty());
}

TEST_F(AcceptorTest, ACookieHasOneListener) {
  const Status again = acceptor->add_listener(kCookie, *this);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kBusy);
}

TEST_F(AcceptorTest, StraysAreDroppedAndCounted) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 300; ++i) {
    Peer& peer = connect();
    ASSERT_NE(peer.events, nullptr);
    std::string noise;
    for (int n = 0; n < 64; ++n) noise += static_cast<char>(rng());
    peer.hear(noise);
    EXPECT_TRUE(peer.stream.aborted);
    EXPECT_TRUE(peer.stream.written.empty());
  }
  Peer& http = connect();
  http.hear("GET / HTTP/1.1\r\n");
  EXPECT_TRUE(http.stream.aborted);
  // Our magic, then invalid bytes.
  Peer& half = connect();
  half.preamble();
  half.hear("\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_TRUE(half.stream.aborted);
  // Records out of turn.
  for (int kind = 0; kind < 3; ++kind) {
    Peer& peer = connect();
    peer.preamble();
    if (kind == 0) peer.chunk({true, 8, 0, 0, 8});
    if (kind == 1) peer.say(Proof{});
    if (kind == 2) peer.say(Bye{});
    EXPECT_TRUE(peer.stream.aborted) << kind;
  }
  EXPECT_EQ(acceptor->counters().strangers.bad_magic, 305U);
  EXPECT_TRUE(sessions.empty());
  EXPECT_TRUE(accept_of(greet()));  // The peer is not affected.
}

TEST_F(AcceptorTest, SilenceEndsAtTheHandshakeTimeout) {
  Peer& silent = connect();
  Peer& slow = connect();
  slow.preamble();
  EXPECT_EQ(acceptor->next_deadline(), now + settings.handshake_timeout);
  acceptor->on_timers(now + settings.handshake_timeout - Duration(1));
  EXPECT_FALSE(silent.stream.is_left());
  acceptor->on_timers(now + settings.handshake_timeout);
  EXPECT_TRUE(silent.stream.aborted);
  EXPECT_TRUE(slow.stream.aborted);
  EXPECT_EQ(acceptor->counters().strangers.timed_out, 2U);
  EXPECT_EQ(acceptor->next_deadline(), kNever);
}

// A peer that sends its hello is accepted at once, however many silent strangers there are.
TEST_F(AcceptorTest, SilentStrangersDisplaceEachOther) {
  std::vector<Peer*> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(&connect());
  silent[1]->preamble();  // Counts as silence.
  EXPECT_EQ(acceptor->counters().strangers.pushed_out, 0U);
  Peer& peer = greet();
  EXPECT_TRUE(accept_of(peer));
  EXPECT_TRUE(silent[0]->stream.aborted);
  EXPECT_FALSE(silent[1]->stream.is_left());
  for (int i = 0; i < 100; ++i) EXPECT_NE(connect().events, nullptr);
  for (const Peer* stranger : silent) EXPECT_TRUE(stranger->stream.aborted);
  EXPECT_TRUE(accept_of(greet(hello(6))));
  EXPECT_FALSE(peer.stream.is_left());
  EXPECT_EQ(sessions.size(), 2U);
  EXPECT_EQ(acceptor->counters().strangers.pushed_out, 101U);
  EXPECT_EQ(acceptor->counters().refused_full, 0U);
  acceptor->on_timers(now + settings.handshake_timeout);
  EXPECT_EQ(acceptor->counters().strangers.timed_out, 7U);
}

TEST_F(AcceptorTest, PendingStreamsAreLimitedAndTheirSlotsAreReused) {
  make(kKey);
  const auto challenged = [&]() -> Peer& {
    Hello h = hello();
    h.has_key = true;
    return greet(h);
  };
  std::vector<Peer*> pending;
  for (int i = 0; i < 8; ++i) pending.push_back(&challenged());
  EXPECT_EQ(connect().events, nullptr);
  EXPECT_EQ(acceptor->counters().refused_full, 1U);
  pending[3]->events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  pending[4]->events->on_closed(now);
  EXPECT_NE(challenged().events, nullptr);
  EXPECT_NE(challenged().events, nullptr);
  EXPECT_EQ(connect().events, nullptr);
  EXPECT_EQ(acceptor->counters().strangers.pushed_out, 0U);
}

TEST_F(AcceptorTest, ASessionBeyondTheLimitIsToldTheLimit) {
  settings.max_sessions = 2;
  make();
  EXPECT_TRUE(accept_of(greet(hello(1))));
  EXPECT_TRUE(accept_of(greet(hello(2))));
  const auto refusal = greet(hello(3)).refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kFull);
  EXPECT_EQ(refusal->ours, 2U);
  EXPECT_EQ(acceptor->counters().refused_full, 1U);
  sessions.pop_back();
  EXPECT_TRUE(accept_of(greet(hello(3))));
}

// When streams run short, sessions get the one they need and keep those they have.
TEST_F(AcceptorTest, FlowsThatASessionCanDoWithoutMayBeRefused) {
  EXPECT_TRUE(accept_of(greet(hello(5))));
  EXPECT_TRUE(accept_of(greet(hello(5, 1, 1))));
  Peer& further = greet(hello(5, 1, 2), /*has_spare=*/false);
  EXPECT_EQ(further.reason(), Reason::kFull);
  EXPECT_TRUE(accept_of(greet(hello(5, 2, 1), /*has_spare=*/false))) << "it had that one";
  EXPECT_TRUE(accept_of(greet(hello(6), /*has_spare=*/false)));
  EXPECT_TRUE(accept_of(greet(hello(6, 2), /*has_spare=*/false)));
  EXPECT_EQ(acceptor->counters().refused_flows, 1U);
  EXPECT_EQ(acceptor->counters().refused_full, 0U) << "no connection was refused";
  EXPECT_TRUE(failures.empty());
}

// In any order of arrival and departure, all allowances together stay within the budget plus the
// minimum of each.
TEST_F(AcceptorTest, AllAllowancesTogetherStayWithinTheBudget) {
  settings.max_sessions = 4096;
  make();
  std::uint64_t sum = 0;
  const auto come = [&](std::uint64_t id) {
    const auto accept = accept_of(greet(hello(id)));
    const std::uint32_t allowance = accept ? accept->allowance_bytes : 0;
    EXPECT_EQ(allowance % 4096, 0U);
    EXPECT_GE(allowance, 4096U) << id;
    sum += allowance;
    return allowance;
  };
  for (std::uint64_t id = 1; id <= 64; ++id) EXPECT_EQ(come(id), 128U << 10) << id;
  for (std::uint64_t id = 65; id <= 4096; ++id) come(id);
  EXPECT_LE(sum, settings.eager_budget_bytes + 4096ULL * 4096);
  EXPECT_GT(sum, settings.eager_budget_bytes / 2 + 4096ULL * 4096) << "it is there to be used";
  EXPECT_EQ(greet(hello(5000)).reason(), Reason::kFull);
  // The first 100 leave, others take their slots.
  sessions.erase(sessions.begin(), sessions.begin() + 100);
  for (std::uint64_t id = 6000; id < 6064; ++id) EXPECT_GE(come(id), 64U << 10) << id;
  sessions.clear();
  EXPECT_EQ(come(7000), 128U << 10);
}

TEST_F(AcceptorTest, AListenerMayRefuseASession) {
  refuse_sessions = true;
  EXPECT_TRUE(greet().stream.aborted);
  acceptor->flush();
  refuse_sessions = false;
  EXPECT_TRUE(accept_of(greet()));
}

// --- Keys --------------------------------------------------------------------------------------

TEST_F(AcceptorTest, WithAKeyBothSidesProveIt) {
  make(kKey);
  Hello h = hello();
  h.has_key = true;
  Peer& peer = greet(h);
  auto records = peer.stream.records();
  ASSERT_EQ(records.size(), 1U);
  const auto challenge = decode_challenge(records[0].body);
  EXPECT_EQ(challenge->mac, receiver_mac(kKey, h, challenge->nonce));
  EXPECT_TRUE(sessions.empty());  // Nothing before the proof.
  peer.say(Proof{sender_mac(kKey, h, challenge->nonce)});
  EXPECT_TRUE(accept_of(peer));
  EXPECT_EQ(sessions.size(), 1U);

  // Every challenge is new, so an old proof is worth nothing.
  Hello resume = hello(5, 2);
  resume.has_key = true;
  Peer& replay = greet(resume);
  records = replay.stream.records();
  EXPECT_NE(decode_challenge(records[0].body)->nonce, challenge->nonce);
  replay.say(Proof{sender_mac(kKey, h, challenge->nonce)});
  EXPECT_EQ(replay.reason(), Reason::kKeyMismatch);
  EXPECT_FALSE(peer.stream.is_left());  // No fence without a proof.
  EXPECT_EQ(acceptor->counters().strangers.bad_key, 1U);
}

TEST_F(AcceptorTest, AKeyOnOneSideOnlyIsReported) {
  make(kKey);
  EXPECT_EQ(greet().reason(), Reason::kKeyMissing);
  make();
  Hello h = hello();
  h.has_key = true;
  EXPECT_EQ(greet(h).reason(), Reason::kKeyUnexpected);
}

TEST_F(AcceptorTest, ASenderThatCannotVerifyTheChallengeIsCounted) {
  make(kKey);
  Hello h = hello();
  h.has_key = true;
  greet(h).events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  EXPECT_EQ(acceptor->counters().strangers.bad_key, 1U);
}

}  // namespace
}  // namespace ztcp::msg
