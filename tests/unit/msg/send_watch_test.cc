// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Flows that make no progress, and their sender's reaction.
#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/msg/send_session_fixture.h"

namespace ztcp::msg {
namespace {

using namespace std::chrono_literals;

class SendWatch : public SendSessionTest {
 protected:
  // Advances the time, and calls the session at its deadlines.
  void pass(Duration time) {
    const TimePoint end = now + time;
    while (session->next_deadline() <= end) {
      now = std::max(now, session->next_deadline());
      session->on_timers(now);
    }
    now = end;
  }
  // Until so many streams have been dialled.
  void wait_for_dial(std::size_t count) {
    while (failures.empty() && dialled.size() < count) {
      ASSERT_NE(session->next_deadline(), kNever);
      now = std::max(now, session->next_deadline());
      session->on_timers(now);
    }
  }
  // The peer acknowledges on this stream all the time.
  void pass_while_answered(Duration time, std::size_t index) {
    for (const TimePoint end = now + time; now < end;) {
      ack(dialled.at(index), 1);
      pass(2ms);
    }
  }
  // Four flows are up, and each carries a part of a message.
  void spread() {
    accept(0, Credit{3, 0, 0});
    post(settings.multi_flow_threshold_bytes + 1);
    for (std::size_t i = 1; i < 4; ++i) accept(i);
  }
  void over_kernel_sockets() {
    settings.ack_is_delivery = false;
    make();
  }
  static bool has_asked(Dialled& d) {
    for (const auto& record : d.stream.records())
      if (record.header.type == RecordType::kAsk) return true;
    return false;
  }
};

TEST_F(SendWatch, FlowThatTimesOutWhileASiblingIsAnswered_IsDialledAgain) {
  spread();
  dialled[1].stream.stalled = {.timeouts = 3};
  for (Dialled& d : dialled) static_cast<void>(d.stream.records());
  pass(110ms);
  EXPECT_TRUE(has_asked(dialled[0]));
  EXPECT_EQ(dialled.size(), 4U) << "no sibling has answered yet";
  ack(dialled[0], 1);
  pass(90ms);
  EXPECT_EQ(dialled[1].stream.peer_asks, 1);
  EXPECT_FALSE(dialled[1].stream.aborted) << "a peer that was stopped answers it, too, soon";
  pass_while_answered(70ms, 0);
  EXPECT_EQ(dialled[1].stream.peer_asks, 5);
  EXPECT_TRUE(dialled[1].stream.aborted);
  ASSERT_EQ(dialled.size(), 5U);
  accept(4);
  ASSERT_EQ(redialled.size(), 1U);
  EXPECT_EQ(redialled[0].lost_port, 40002);
  EXPECT_EQ(redialled[0].port, 40005);
  EXPECT_TRUE(failures.empty());
}

// The peer was stopped, and goes on: its siblings were answered first.
TEST_F(SendWatch, FlowThatIsAnsweredAfterItsSiblings_Stays) {
  spread();
  dialled[1].stream.stalled = {.timeouts = 5};
  pass(110ms);
  ack(dialled[0], 1);
  pass(100ms);
  dialled[1].stream.stalled.silence = 5ms;
  pass_while_answered(90ms, 0);
  EXPECT_FALSE(dialled[1].stream.aborted);
  EXPECT_EQ(dialled.size(), 4U);
}

// A slow peer: what it did not answer to its siblings either proves nothing.
TEST_F(SendWatch, FlowBesideSiblingsThatFallSilentAgain_Stays) {
  spread();
  dialled[1].stream.stalled = {.timeouts = 5};
  for (int i = 0; i < 4; ++i) {
    pass(100ms);
    ack(dialled[0], 1);
  }
  pass(1s);
  EXPECT_GT(dialled[1].stream.peer_asks, 0);
  EXPECT_FALSE(dialled[1].stream.aborted);
}

// All were on dead paths, and another port reaches the peer.
TEST_F(SendWatch, FlowsThatAllTimeOut_MoveOnceAnotherPortIsAnswered) {
  spread();
  for (Dialled& d : dialled) d.stream.stalled = {.timeouts = 3};
  const TimePoint begin = now;
  pass(110ms);
  ASSERT_EQ(dialled.size(), 5U) << "one stream for all";
  dialled[4].stream.stalled.silence = 0ms;
  dialled[4].events->on_open(now, dialled[4].stream);
  dialled[3].stream.stalled.silence = 0ms;
  while (!dialled[0].stream.aborted) pass(1ms);
  EXPECT_LE(now - begin, 250ms);
  EXPECT_NE(dialled[4].stream.handed_to, nullptr);
  EXPECT_TRUE(dialled[1].stream.aborted);
  EXPECT_TRUE(dialled[2].stream.aborted);
  EXPECT_FALSE(dialled[3].stream.aborted) << "its path carries packets";
  pass(1ms);
  EXPECT_EQ(dialled.size(), 7U);
  EXPECT_TRUE(failures.empty());
}

// The peer is stopped again.
TEST_F(SendWatch, FlowsBesideANewStreamThatFallsSilent_Stay) {
  spread();
  for (Dialled& d : dialled) d.stream.stalled = {.timeouts = 3};
  pass(110ms);
  dialled.at(4).events->on_open(now, dialled[4].stream);
  pass(1s);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(dialled[i].stream.aborted);
  EXPECT_TRUE(dialled[4].stream.aborted);
}

// An acknowledgement that is older than the timeouts proves nothing: the whole peer may be silent.
TEST_F(SendWatch, SiblingsAnsweredBeforeTheTimeouts_AreNoReasonToRedial) {
  spread();
  for (Dialled& d : dialled) ack(d, 1);
  for (Dialled& d : dialled) d.stream.stalled = {.timeouts = 3};
  pass(3s);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(dialled[i].stream.aborted);
}

// Its bytes were acknowledged since the last check, and then its path broke.
TEST_F(SendWatch, FlowThatTimesOutBetweenTwoChecks_IsRedialledAtTheSecond) {
  spread();
  pass(50ms);
  ack(dialled[1], 1);
  dialled[1].stream.stalled = {.timeouts = 3};
  pass(60ms);
  EXPECT_EQ(dialled.size(), 4U);
  ack(dialled[0], 1);
  pass(90ms);
  pass_while_answered(70ms, 0);
  EXPECT_EQ(dialled.size(), 5U);
}

// The new port may lead to the same dead path. A peer that answers on other flows would answer.
TEST_F(SendWatch, RedialsBesideLivingFlows_AreSoonRepeated) {
  spread();
  dialled[1].stream.stalled = {.timeouts = 3};
  pass(110ms);
  ack(dialled[0], 1);
  pass(90ms);
  pass_while_answered(70ms, 0);
  ASSERT_EQ(dialled.size(), 5U);
  const TimePoint first = now;
  wait_for_dial(7);
  EXPECT_LE(now - first, 800ms);
  wait_for_dial(8);
  const TimePoint later = now;
  wait_for_dial(9);
  EXPECT_GE(now - later, settings.redial_attempt) << "the peer may be slow";
}

TEST_F(SendWatch, RedialsWithoutLivingFlows_HaveTheWholeTime) {
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.timeouts = 3};
  while (!dialled[0].stream.aborted) pass(1ms);
  const TimePoint first = now;
  wait_for_dial(dialled.size() + 1);
  EXPECT_GE(now - first, settings.redial_attempt);
}

TEST_F(SendWatch, FlowsThatAllTimeOut_AreLeftAloneForAWhile) {
  spread();
  for (Dialled& d : dialled) d.stream.stalled = {.timeouts = 5};
  pass(3900ms);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(dialled[i].stream.aborted);
  EXPECT_LE(dialled.size(), 4U + 12U) << "streams that look for another path";
  pass(300ms);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(dialled[i].stream.aborted);
}

// Another port reaches the peer, which answers nothing on the flow: its path is dead.
TEST_F(SendWatch, LoneFlowOnADeadPath_GoesOnOverTheStreamThatReachesThePeer) {
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.timeouts = 3};
  const TimePoint begin = now;
  pass(110ms);
  ASSERT_EQ(dialled.size(), 2U);
  now += 1ms;
  dialled[1].stream.stalled.silence = 0ms;
  dialled[1].events->on_open(now, dialled[1].stream);
  EXPECT_EQ(dialled[0].stream.peer_asks, 1);
  while (!dialled[0].stream.aborted) pass(1ms);
  EXPECT_LE(now - begin, 300ms);
  EXPECT_EQ(dialled[0].stream.peer_asks, 5);
  EXPECT_EQ(dialled.size(), 2U) << "no further dial";
  ASSERT_NE(dialled[1].stream.handed_to, nullptr);
  dialled[1].events = dialled[1].stream.handed_to;
  ASSERT_EQ(dialled[1].stream.records().at(0).header.type, RecordType::kHello);
  preamble(dialled[1]);
  say(dialled[1], kLimits);
  say(dialled[1], Credit{3, 0, 0});
  say(dialled[1], Ready{});
  EXPECT_EQ(chunks(dialled[1]).size(), 1U);
  ASSERT_EQ(redialled.size(), 1U);
  EXPECT_EQ(redialled[0].lost_port, 40001);
  EXPECT_EQ(redialled[0].port, 40002);
  EXPECT_TRUE(failures.empty());
}

// The path drops packets, but carries some.
TEST_F(SendWatch, LoneFlowThatIsAnsweredBesideAnotherStream_Stays) {
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.timeouts = 3};
  pass(110ms);
  dialled.at(1).events->on_open(now, dialled[1].stream);
  pass(20ms);
  dialled[0].stream.stalled.silence = 10ms;
  pass(80ms);
  EXPECT_FALSE(dialled[0].stream.aborted);
  EXPECT_TRUE(dialled[1].stream.aborted);
}

TEST_F(SendWatch, LoneFlowWithTwoTimeouts_IsComparedButStays) {
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.timeouts = 2};
  pass(110ms);
  dialled.at(1).events->on_open(now, dialled[1].stream);
  pass(500ms);
  EXPECT_FALSE(dialled[0].stream.aborted);
  dialled[0].stream.stalled = {};
  pass(100ms);
  EXPECT_FALSE(dialled[0].stream.aborted);
  EXPECT_TRUE(dialled[1].stream.aborted) << "no doubt is left";
}

// Nothing opens while the peer is stopped.
TEST_F(SendWatch, LoneFlowOfAStoppedPeer_Stays) {
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.timeouts = 5};
  pass(3900ms);
  EXPECT_FALSE(dialled[0].stream.aborted);
  EXPECT_LE(dialled.size(), 12U);
  for (std::size_t i = 1; i + 1 < dialled.size(); ++i) EXPECT_TRUE(dialled[i].stream.aborted);
  dialled[0].stream.stalled = {};
  pass(1700ms);
  for (std::size_t i = 1; i < dialled.size(); ++i) EXPECT_TRUE(dialled[i].stream.aborted);
}

TEST_F(SendWatch, StreamsBesideALoneFlow_EndWithItsSession) {
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.timeouts = 3};
  pass(110ms);
  dialled.at(1).events->on_open(now, dialled[1].stream);
  session->abort();
  EXPECT_TRUE(dialled[1].stream.aborted);
}

TEST_F(SendWatch, LoneFlowWhosePeerAnswersOnAnotherSession_IsDialledAgain) {
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.timeouts = 2};
  is_answered_elsewhere = true;
  pass(300ms);
  EXPECT_EQ(dialled.size(), 1U) << "two timeouts may be random losses";
  dialled[0].stream.stalled = {.timeouts = 3};
  pass(200ms);
  EXPECT_EQ(dialled.size(), 2U);
}

// Of four flows that carry bulk, some have timeouts at a check, and all go on.
TEST_F(SendWatch, FlowWithTimeoutsBesideGoodSiblings_LeavesItsPath) {
  spread();
  post(1U << 20);
  const auto check = [&](std::vector<std::size_t> bad) {
    for (Dialled& d : dialled) {
      d.stream.vitals.delivered_bytes += 1'000'000;
      if (!d.stream.aborted) ack(d, d.acked == 0 ? 70'000 : 1);
    }
    for (const std::size_t i : bad) {
      dialled[i].stream.vitals.timeouts += 1;
      dialled[i].stream.vitals.retransmitted_bytes += 500'000;
    }
    pass(100ms);
  };
  for (int i = 0; i < 5; ++i) check({0, 1, 2});
  check({1});
  check({1});
  EXPECT_EQ(dialled.size(), 4U);
  check({1});
  ASSERT_EQ(dialled.size(), 5U);
  EXPECT_FALSE(dialled[1].stream.aborted) << "the new stream is not open yet";
  dialled[4].events->on_open(now, dialled[4].stream);
  pass(1ms);
  EXPECT_TRUE(dialled[1].stream.aborted);
  ASSERT_NE(dialled[4].stream.handed_to, nullptr);
  dialled[4].events = dialled[4].stream.handed_to;
  preamble(dialled[4]);
  say(dialled[4], kLimits);
  say(dialled[4], Ready{});
  ASSERT_EQ(redialled.size(), 1U);
  EXPECT_EQ(redialled[0].timeouts, 3U);
  EXPECT_EQ(redialled[0].lost_port, 40002);
  EXPECT_EQ(redialled[0].port, 40005);
  for (int i = 0; i < 6; ++i) check({2});
  EXPECT_EQ(dialled.size(), 5U) << "a pause";
  for (int i = 0; i < 6 && dialled.size() == 5; ++i) check({2});
  EXPECT_EQ(dialled.size(), 6U);
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendWatch, FlowOnABadPath_StaysIfNoOtherStreamOpensSoon) {
  spread();
  post(1U << 20);
  for (int i = 0; i < 9; ++i) {
    for (std::size_t flow = 0; flow < 4; ++flow) {
      dialled[flow].stream.vitals.delivered_bytes += 1'000'000;
      ack(dialled[flow], 70'000);
    }
    dialled[2].stream.vitals.marked_bytes += 700'000;
    pass(100ms);
  }
  ASSERT_EQ(dialled.size(), 5U);
  EXPECT_FALSE(dialled[2].stream.aborted);
  EXPECT_TRUE(dialled[4].stream.aborted);
}

TEST_F(SendWatch, SessionIsAskedOnceForANewerAnswer) {
  spread();
  for (Dialled& d : dialled) static_cast<void>(d.stream.records());
  now += 1ms;
  const TimePoint since = now;
  EXPECT_FALSE(session->is_answering_since(now, since));
  for (Dialled& d : dialled) EXPECT_TRUE(has_asked(d));
  EXPECT_FALSE(session->is_answering_since(now + 100ms, since));
  for (Dialled& d : dialled) EXPECT_FALSE(has_asked(d));
  ack(dialled[2], 1);
  EXPECT_TRUE(session->is_answering_since(now + 200ms, since));
  EXPECT_FALSE(session->is_answering_since(now + 200ms, now + 200ms)) << "of a later doubt";
}

TEST_F(SendWatch, FlowWithAClosedWindow_IsKept) {
  over_kernel_sockets();
  accept(0, Credit{3, 0, 0});
  post(100);
  dialled[0].stream.stalled = {.is_shut = true};
  pass(60s);
  EXPECT_EQ(dialled.size(), 1U);
  EXPECT_FALSE(dialled[0].stream.aborted);
  ASSERT_FALSE(dialled[0].stream.tolerated.empty());
  EXPECT_GT(dialled[0].stream.tolerated.back(), 59s);
  EXPECT_EQ(troubles, std::vector{PeerTrouble::kStandsStill});
  dialled[0].stream.stalled = {};
  ack(dialled[0], 10'000);
  say(dialled[0], Credit{3, 0, 1});
  pass(1s);
  EXPECT_EQ(dialled[0].stream.tolerated.back(), 0s) << "the usual limit again";
  ASSERT_EQ(troubles_over.size(), 1U);
  EXPECT_GT(troubles_over[0], 59s);
  EXPECT_EQ(session->next_deadline(), kNever) << "nothing is outstanding";
}

TEST_F(SendWatch, FlowGivenUpEarly_LeavesTheWholeTimeToComeBack) {
  accept(0, Credit{3, 0, 0});
  post(100);
  const TimePoint stalled = now;
  dialled[0].stream.stalled = {.timeouts = 4};
  pass(settings.sender_notices + settings.redial_window - 500ms);
  EXPECT_TRUE(failures.empty());
  EXPECT_EQ(troubles, std::vector{PeerTrouble::kSilent});
  while (failures.empty()) pass(100ms);
  EXPECT_LE(now - stalled,
            settings.sender_notices + settings.redial_window + settings.redial_attempt + 200ms);
}

// Its receiver has posted the buffer, and its kernel has acknowledged every byte.
TEST_F(SendWatch, ProcessThatDoesNotReadFromItsKernel_IsReported) {
  over_kernel_sockets();
  accept(0, Credit{1, 0, 0});
  post(100);
  ack(dialled[0], kHelloBytes + 100);
  dialled[0].stream.stalled = {.is_acked = true};
  pass(1500ms);
  EXPECT_TRUE(troubles.empty());
  pass(1500ms);
  EXPECT_EQ(troubles, std::vector{PeerTrouble::kStandsStill});
  say(dialled[0], Credit{1, 0, 1});
  pass(200ms);
  EXPECT_EQ(troubles_over.size(), 1U);
}

// A receiver reports copied messages only when asked: silence is no sign of a stop, and one request
// ends the watch.
TEST_F(SendWatch, ReceiptsOfCopies_AreAskedForOnce) {
  settings.kept_message_bytes = 2048;
  over_kernel_sockets();
  accept(0, Credit{8, 0, 0});
  post(100);
  static_cast<void>(dialled[0].stream.records());
  ack(dialled[0], kHelloBytes + kHeaderBytes + Chunk::kBody + 100);
  dialled[0].stream.stalled = {.is_acked = true};
  pass(1500ms);
  EXPECT_TRUE(has_asked(dialled[0]));
  ack(dialled[0], kHeaderBytes + Ask::kBody);
  say(dialled[0], Credit{8, 0, 1});
  pass(60s);
  EXPECT_FALSE(has_asked(dialled[0]));
  EXPECT_TRUE(troubles.empty());
  EXPECT_EQ(session->next_deadline(), kNever);
}

TEST_F(SendWatch, ReceiverThatHasPostedNothing_IsNotReported) {
  over_kernel_sockets();
  accept(0);
  post(100);
  ack(dialled[0], kHelloBytes + 100);
  dialled[0].stream.stalled = {.is_acked = true};
  pass(60s);
  EXPECT_TRUE(troubles.empty());
}

// Its kernel has the hello, but the process is stopped.
TEST_F(SendWatch, HelloThatAStoppedProcessDoesNotAnswer_IsWaitedFor) {
  over_kernel_sockets();
  accept(0, Credit{1, 0, 0});
  post(100);
  dialled[0].events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  session->on_timers(now);
  ASSERT_EQ(dialled.size(), 2U);
  open(1);
  dialled[1].stream.stalled = {.is_acked = true};
  pass(60s);
  EXPECT_TRUE(failures.empty());
  EXPECT_EQ(dialled.size(), 2U);
  EXPECT_EQ(troubles, std::vector{PeerTrouble::kStandsStill});
  say(dialled[1], kLimits);
  say(dialled[1], Ready{});
  EXPECT_EQ(redialled.size(), 1U);
  EXPECT_EQ(troubles_over.size(), 1U);
}

// A process that hangs for good must not hold up the job for ever.
TEST_F(SendWatch, LaterHelloWithoutAnAnswer_IsWaitedForWithinBounds) {
  over_kernel_sockets();
  accept(0, Credit{1, 0, 0});
  post(100);
  dialled[0].events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  session->on_timers(now);
  const Duration limit = 360 * settings.handshake_timeout;
  const auto wait = [&](Duration time) {
    for (const TimePoint end = now + time; now < end && failures.empty();) {
      for (std::size_t i = 1; i < dialled.size(); ++i) {
        if (dialled[i].stream.aborted || dialled[i].stream.stalled.is_acked) continue;
        open(i);
        dialled[i].stream.stalled = {.is_acked = true};
      }
      pass(settings.redial_attempt);
    }
  };
  wait(limit - 10s);
  EXPECT_TRUE(failures.empty());
  EXPECT_EQ(dialled.size(), 2U);
  wait(limit);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
  EXPECT_STREQ(failures[0].where, "handshake: its host's kernel answers, its process does not");
}

TEST_F(SendWatch, FirstHelloWithoutAnAnswer_IsWaitedForWithinBounds) {
  over_kernel_sockets();
  open(0);
  dialled[0].stream.stalled = {.is_acked = true};
  pass(60s);
  EXPECT_TRUE(failures.empty());
  pass(100s);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kTimedOut);
}

// A path that carries handshakes but nothing larger, however long TCP waits for it.
TEST_F(SendWatch, PathThatDeliversNoPayload_IsTriedWithSmallerSegmentsAndGivenUp) {
  for (const Duration life : {1s, 6s, 8s, 30s}) {
    SCOPED_TRACE(std::chrono::duration_cast<std::chrono::seconds>(life).count());
    session.reset();
    dialled.clear();
    failures.clear();
    segment_limits.clear();
    over_kernel_sockets();
    accept(0, Credit{3, 0, 0});
    post(100'000);
    for (int lives = 0; failures.empty() && lives < 100; ++lives) {
      dialled.back().events->on_acked(now, 200'000);  // The kernel has copied it.
      now += life;
      dialled.back().stream.vitals.delivered_bytes = kHelloBytes;
      dialled.back().events->on_failed(now, Error{Errc::kTimedOut, 0, "user timeout"});
      if (!failures.empty()) break;
      wait_for_dial(dialled.size() + 1);
      if (failures.empty()) accept(dialled.size() - 1, Credit{3, 0, 0});
    }
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].code, Errc::kPathMtu);
    EXPECT_EQ(dialled.size(), settings.max_redials + 1U);
    EXPECT_EQ(segment_limits, (std::vector<std::uint32_t>{1360, 1024, 1024}));
  }
}

// Only a path on which the next handshake succeeds at once needs small segments.
TEST_F(SendWatch, OutageRightAfterAHandshake_IsNotTakenForAnMtu) {
  over_kernel_sockets();
  accept(0, Credit{3, 0, 0});
  post(100'000);
  now += 3s;
  dialled[0].events->on_failed(now, Error{Errc::kTimedOut, 0, "user timeout"});
  for (std::size_t dial = 1; dial < 3; ++dial) {
    wait_for_dial(dial + 1);
    dialled[dial].events->on_failed(now, Error{Errc::kNoRoute, 113, "connect"});
  }
  wait_for_dial(4);
  accept(3, Credit{3, 0, 0});
  EXPECT_EQ(segment_limits, std::vector<std::uint32_t>{1360});
  EXPECT_EQ(small_flows, 0);
  EXPECT_TRUE(failures.empty());
}

// A received message, or many bytes acknowledged by the peer's TCP, are progress.
TEST_F(SendWatch, FlowsThatDeliverSomethingEach_AreDialledForEver) {
  for (const bool by_message : {false, true}) {
    session.reset();
    dialled.clear();
    over_kernel_sockets();
    std::uint64_t received = 0;
    accept(0, Credit{1000, 0, 0});
    for (int lives = 1; lives <= 20; ++lives) {
      post(100'000);
      dialled.back().events->on_acked(now, 200'000);  // The kernel has copied it.
      if (by_message)
        say(dialled.back(), Credit{1000, 0, ++received});
      else
        dialled.back().stream.vitals.delivered_bytes = 90'000;
      now += 1s;
      dialled.back().events->on_failed(now, Error{Errc::kTimedOut, 0, "user timeout"});
      ASSERT_TRUE(failures.empty()) << lives;
      wait_for_dial(dialled.size() + 1);
      accept(dialled.size() - 1, Credit{1000, 0, received});
    }
    EXPECT_TRUE(segment_limits.empty());
  }
}

}  // namespace
}  // namespace ztcp::msg
