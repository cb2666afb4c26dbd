// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Flows that are not answered while their peer lives: the sender moves them to other paths.
#include <chrono>
#include <cstddef>

#include <gtest/gtest.h>

#include "tests/unit/msg/send_watch_fixture.h"

namespace ztcp::msg {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace ztcp::msg
