// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Peers that read nothing, post nothing or are stopped: the sender asks, waits and reports.
#include <chrono>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/send_watch_fixture.h"

namespace ztcp::msg {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace ztcp::msg
