// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a sender ends: closed, or with its process.
#include <gtest/gtest.h>

#include "tests/unit/msg/send_session_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

TEST_F(SendSessionTest, LeavesAnIdleReceiverWithABye) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  static_cast<void>(d.stream.records());
  session->leave(now);
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(decode_bye(records[0].header, records[0].body)->process_ends);
  EXPECT_TRUE(d.stream.closed);
  EXPECT_FALSE(session->is_finishing());
}

// Its streams refer to memory that may be going, and after a reset alone the receiver would wait
// for a redial.
TEST_F(SendSessionTest, LeavesMessagesUnderWayWithAResetAndAHello) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  session->leave(now);
  EXPECT_TRUE(d.stream.aborted);
  EXPECT_TRUE(session->is_finishing());
  session->on_timers(now);
  Dialled& last = dialled.at(1);
  last.events->on_open(now, last.stream);
  const auto records = last.stream.records();
  ASSERT_EQ(records.size(), 1U);
  const auto hello = decode_hello(records[0].header, records[0].body);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->process_ends);
  EXPECT_EQ(hello->session, kId);
  EXPECT_EQ(hello->epoch, 2U);
  preamble(last);
  say(last, Refusal{Reason::kUnknownSession, 0, 0});
  EXPECT_FALSE(session->is_finishing());
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendSessionTest, ReadsNoMemoryAfterLeaving) {
  accept(0, Credit{1, 0, 0});
  post(100);
  session->leave(now);
  Dialled& last = accept(1, Credit{1, 0, 0});
  for (const auto& record : last.stream.records()) EXPECT_EQ(record.header.type, RecordType::kBye);
  EXPECT_FALSE(session->is_finishing());
}

TEST_F(SendSessionTest, TriesAgainWhenTheLastHelloGetsLost) {
  accept(0, Credit{1, 0, 0});
  post(100);
  session->leave(now);
  session->on_timers(now);
  dialled.at(1).events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  EXPECT_TRUE(session->is_finishing());
  session->on_timers(session->next_deadline());
  EXPECT_EQ(dialled.size(), 3U);
}

// --- An abort -----------------------------------------------------------------------------------

TEST_F(SendSessionTest, AbortsWithARefusalOnAFlowThatRefersToNoMessage) {
  Dialled& d = accept(0, {}, Accept{true, 100, 4, 32, kId});
  ack(d, kHelloBytes);
  post(9000);  // It waits for credit.
  static_cast<void>(d.stream.records());
  EXPECT_FALSE(session->give_up(now));
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  ASSERT_EQ(records[0].header.type, RecordType::kRefusal);
  EXPECT_EQ(decode_refusal(records[0].body)->reason, Reason::kAborted);
  EXPECT_TRUE(d.stream.closed);
  EXPECT_FALSE(session->is_finishing());
  EXPECT_EQ(session->next_deadline(), kNever);
  EXPECT_TRUE(failures.empty());
  EXPECT_EQ(closed, 0);
}

// No record can follow half of a chunk, and its memory can't be kept.
TEST_F(SendSessionTest, AbortsMessagesUnderWayWithAResetAndAHello) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  EXPECT_TRUE(session->give_up(now));
  EXPECT_TRUE(d.stream.aborted);
  EXPECT_TRUE(session->is_finishing());
  post(1);  // Too late.
  Dialled& last = open(1);
  const auto records = last.stream.records();
  ASSERT_EQ(records.size(), 1U);
  const auto hello = decode_hello(records[0].header, records[0].body);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->aborts);
  EXPECT_FALSE(hello->process_ends);
  EXPECT_EQ(hello->epoch, 2U);
  say(last, Refusal{Reason::kUnknownSession, 0, 0});
  EXPECT_FALSE(session->is_finishing());
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendSessionTest, AbortsSilentlyBeforeThePeerKnowsTheSession) {
  session->on_timers(now);
  EXPECT_FALSE(session->give_up(now));
  EXPECT_TRUE(dialled.at(0).stream.aborted);
  EXPECT_EQ(session->next_deadline(), kNever);
}

// A stopped peer's kernel accepts a connection, but the peer sends nothing.
TEST_F(SendSessionTest, TriesToTellOfAnAbortForARedialWindowAtMost) {
  settings.ack_is_delivery = false;
  make();
  accept(0, Credit{1, 0, 0}, Accept{false, 8192, 4, 32, kId});
  post(100);
  EXPECT_TRUE(session->give_up(now));
  const TimePoint aborted = now;
  for (std::size_t i = 1; session->is_finishing(); ++i) {
    ASSERT_LE(now - aborted, settings.redial_window + settings.redial_attempt);
    session->on_timers(now);
    if (i < dialled.size() && !dialled[i].stream.is_left()) {
      dialled[i].stream.stalled.is_acked = true;
      dialled[i].events->on_open(now, dialled[i].stream);
    }
    now = session->next_deadline();
  }
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendSessionTest, FailsAtOnceWhenTheReceiverAborts) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  say(d, Refusal{Reason::kAborted, 0, 0});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
  EXPECT_EQ(session->failure_detail().reason, Reason::kAborted);
}

// Its receiver would wait for a redial.
TEST_F(SendSessionTest, SendsTheReasonOfAFailureWhereAFlowAcceptsIt) {
  Dialled& d = accept(0);
  ack(d, kHelloBytes);
  static_cast<void>(d.stream.records());
  say(d, Credit{0, 5, 0});
  ASSERT_EQ(failures.size(), 1U);
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  ASSERT_EQ(records[0].header.type, RecordType::kRefusal);
  EXPECT_EQ(decode_refusal(records[0].body)->reason, session->failure_detail().reason);
}

TEST_F(SendSessionTest, FailureNamesTheEndOfTheReceiversProcess) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  post(100);
  say(d, Bye{0, /*process_ends=*/true});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
  EXPECT_EQ(session->failure_detail().reason, Reason::kProcessEnded);

  failures.clear();
  dialled.clear();
  make();
  say(accept(0), Bye{0, /*process_ends=*/true});
  EXPECT_TRUE(failures.empty()) << "an idle sender has lost nothing";
  post(1);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(session->failure_detail().reason, Reason::kProcessEnded);
}

TEST_F(SendSessionTest, ClosesWithByeOnEveryFlowOnceAllIsDone) {
  Dialled& d = accept(0, Credit{1, 0, 0});
  ack(d, kHelloBytes);
  post(100);
  static_cast<void>(d.stream.records());
  session->close();
  EXPECT_FALSE(d.stream.is_left());
  ack(d, kChunkRecordBytes + 100);
  EXPECT_TRUE(d.stream.closed);
  const auto records = d.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(decode_bye(records[0].header, records[0].body)->messages, 1U);
  EXPECT_EQ(closed, 1);
}

TEST_F(SendSessionTest, ClosesAlsoWhenTheReceiverIsGone) {
  accept(0).events->on_failed(now, Error{Errc::kPeerClosed, 0, "tcp reset"});
  session->close();
  EXPECT_EQ(closed, 0);
  say(open(1), Refusal{Reason::kUnknownSession});
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(session->next_deadline(), kNever);
  EXPECT_TRUE(failures.empty());
}

TEST_F(SendSessionTest, WritesOutsideTheRingsGoOutLater) {
  Dialled& d = accept(0, Credit{9, 0, 0});
  d.stream.full = true;
  post(100);
  EXPECT_TRUE(chunks(d).empty());
  d.stream.full = false;
  ack(d, 1);
  EXPECT_EQ(chunks(d).size(), 1U);
}

}  // namespace
}  // namespace ztcp::msg
