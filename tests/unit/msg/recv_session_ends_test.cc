// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a session ends: closed by either side, or with a process.
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

using RecvSessionTest = AcceptorTest;

TEST_F(RecvSessionTest, ClosesInOrderFromEitherSide) {
  Peer& peer = greet();
  peer.say(Bye{0});
  peer.events->on_closed(now);
  EXPECT_TRUE(peer.stream.closed);
  EXPECT_TRUE(failures.empty());
  sessions[0]->close();
  EXPECT_EQ(closed, 1);

  Peer& other = greet(hello(6));
  static_cast<void>(other.stream.records());
  sessions[1]->close();
  const auto records = other.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(decode_bye(records[0].header, records[0].body)->messages, 0U);
  EXPECT_TRUE(other.stream.closed);
  EXPECT_EQ(closed, 2);
}

TEST_F(RecvSessionTest, MessagesHeldAtTheByeCanStillBeReceived) {
  Peer& peer = greet();
  peer.chunk({true, 5, 0, 0, 5}, std::byte{9});
  peer.say(Bye{1});
  peer.events->on_closed(now);
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  EXPECT_EQ(done, (Done{{1, 5}}));
  EXPECT_EQ(buffer[4], std::byte{9});
  post(buffer, 2);  // But no more than there are.
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

TEST_F(RecvSessionTest, ReceivesOutstandingAtTheByeFail) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.say(Bye{0});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

// --- The end of a process -----------------------------------------------------------------------

TEST_F(RecvSessionTest, LeavesWithAByeAndWritesNoMemoryAfterwards) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5, std::byte{0xee});
  post(buffer, 1);
  static_cast<void>(peer.stream.records());
  sessions[0]->leave(now);
  const auto records = peer.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(decode_bye(records[0].header, records[0].body)->process_ends);
  EXPECT_FALSE(peer.stream.is_left()) << "bytes in flight would be answered with RST";
  peer.chunk({false, 5, 0, 0, 5}, std::byte{9});
  EXPECT_EQ(buffer[0], std::byte{0xee});
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(failures.empty());
}

TEST_F(RecvSessionTest, FailsAtOnceWhenAHelloAnnouncesTheEndOfTheProcess) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  EXPECT_TRUE(failures.empty()) << "it might be dialled again";
  Hello last = hello(5, 2);
  last.process_ends = true;
  Peer& messenger = connect();
  messenger.preamble();
  messenger.say(last);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kProcessEnded);
  EXPECT_EQ(messenger.reason(), Reason::kUnknownSession);
}

// The sender was told that they are done.
TEST_F(RecvSessionTest, MessagesOfAProcessThatEndedCanStillBeReceived) {
  Peer& peer = greet();
  peer.chunk({true, 5, 0, 0, 5}, std::byte{9});
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  Hello last = hello(5, 2);
  last.process_ends = true;
  Peer& messenger = connect();
  messenger.preamble();
  messenger.say(last);
  EXPECT_TRUE(failures.empty());
  EXPECT_FALSE(sessions[0]->needs_peer());
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  EXPECT_EQ(done, (Done{{1, 5}}));
  post(buffer, 2);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kProcessEnded);
}

TEST_F(RecvSessionTest, MessagesOfASenderThatDoesNotComeBackCanStillBeReceived) {
  Peer& peer = greet();
  peer.chunk({true, 5, 0, 0, 5}, std::byte{9});
  peer.chunk({true, 4096, 1, 0, 9000}, std::byte{9});
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  now += settings.resume_wait();
  sessions[0]->on_timers(now);
  EXPECT_TRUE(failures.empty());
  std::vector<std::byte> buffer(9000);
  post(buffer, 1);
  EXPECT_EQ(done, (Done{{1, 5}}));
  post(buffer, 2);  // Only a part of it has arrived.
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

TEST_F(RecvSessionTest, AHelloOfAnEndingProcessMakesNoSession) {
  Hello last = hello();
  last.process_ends = true;
  Peer& peer = connect();
  peer.preamble();
  peer.say(last);
  EXPECT_TRUE(sessions.empty());
  EXPECT_EQ(peer.reason(), Reason::kUnknownSession);
}

// --- An abort -----------------------------------------------------------------------------------

TEST_F(RecvSessionTest, AbortsWithARefusalAndWritesNoMemoryAfterwards) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5, std::byte{0xee});
  post(buffer, 1);
  static_cast<void>(peer.stream.records());
  sessions[0]->give_up();
  EXPECT_EQ(peer.reason(), Reason::kAborted);
  EXPECT_TRUE(peer.stream.closed) << "a reset would overtake it";
  EXPECT_EQ(buffer[0], std::byte{0xee});
  EXPECT_TRUE(failures.empty());
  EXPECT_EQ(closed, 0);
}

TEST_F(RecvSessionTest, AbortsByResetWhereNoRecordFits) {
  Peer& peer = greet();
  peer.stream.full = true;
  sessions[0]->give_up();
  EXPECT_TRUE(peer.stream.aborted);
  sessions.clear();
  EXPECT_EQ(greet(hello(5, 2)).reason(), Reason::kAborted) << "it hears of it when it comes back";
}

TEST_F(RecvSessionTest, FailsAtOnceWhenTheSenderAborts) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.say(Refusal{Reason::kAborted});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kAborted);
}

TEST_F(RecvSessionTest, FailsAtOnceWhenAHelloAnnouncesAnAbort) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  EXPECT_TRUE(failures.empty()) << "it might be dialled again";
  Hello last = hello(5, 2);
  last.aborts = true;
  Peer& messenger = connect();
  messenger.preamble();
  messenger.say(last);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kAborted);
  EXPECT_EQ(messenger.reason(), Reason::kUnknownSession);
}

// The sender was told that they are done. No flow may join the session any more, and none is waited
// for.
TEST_F(RecvSessionTest, MessagesOfASenderThatAbortedCanStillBeReceived) {
  Peer& peer = greet();
  peer.chunk({true, 5, 0, 0, 5}, std::byte{9});
  peer.say(Refusal{Reason::kAborted});
  EXPECT_TRUE(failures.empty());
  peer.events->on_closed(now);
  EXPECT_EQ(sessions[0]->next_deadline(), kNever);
  Peer& late = connect();
  late.preamble();
  late.say(hello(5, 2));
  EXPECT_EQ(late.reason(), Reason::kUnknownSession);
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  EXPECT_EQ(done, (Done{{1, 5}}));
  post(buffer, 2);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kAborted);
}

TEST_F(RecvSessionTest, FailureNamesTheEndOfTheSendersProcess) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.say(Bye{0, /*process_ends=*/true});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kProcessEnded);
}

TEST_F(RecvSessionTest, FinWithoutByeIsADeadFlow) {
  Peer& peer = greet();
  peer.events->on_closed(now);
  EXPECT_TRUE(peer.stream.aborted);
  EXPECT_TRUE(failures.empty());
  EXPECT_TRUE(accept_of(greet(hello(5, 2))));
}

TEST_F(RecvSessionTest, SessionsMayOutliveTheirAcceptor) {
  Peer& peer = greet();
  acceptor.reset();
  EXPECT_TRUE(peer.stream.aborted);
  sessions[0]->close();
  sessions.clear();
}

}  // namespace
}  // namespace ztcp::msg
