// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memory runs out while a sender is admitted: it is refused by name, and memory reserved for it is
// available to the next. Or while a connection uses more tags than it has room for: that connection
// fails, and no exception leaves it.
#include <gtest/gtest.h>

#include "tests/support/failing_allocation.h"
#include "tests/unit/msg/acceptor_fixture.h"
#include "tests/unit/msg/send_session_fixture.h"

namespace ztcp::msg {
namespace {

TEST_F(AcceptorTest, ASenderWithoutMemoryIsRefusedAndTakesNoneOfTheBudget) {
  settings.eager_budget_bytes = 1U << 20;  // An allowance that is not freed would show in the next
                                           // one.
  make();
  std::uint32_t first_allowance = 0;
  {
    const auto accept = accept_of(greet(hello(1000)));
    ASSERT_TRUE(accept);
    first_allowance = accept->allowance_bytes;
    sessions.clear();
  }
  std::size_t refused = 0;
  for (std::size_t nth = 1;; ++nth) {
    Peer& peer = connect();
    peer.preamble();
    RecordBuffer out;
    const auto bytes = std::span(out).first(encode(hello(nth), out));
    peer.stream.written.reserve(4096);  // The test's own.
    sessions.reserve(sessions.size() + 1);
    test::FailingAllocation failing(nth);
    failing.during([&] { peer.hear(bytes); });
    if (!failing.has_failed()) {
      const auto accept = accept_of(peer);
      ASSERT_TRUE(accept);
      EXPECT_EQ(accept->allowance_bytes, first_allowance);
      break;
    }
    ++refused;
    EXPECT_EQ(peer.reason(), Reason::kOutOfMemory);
    EXPECT_FALSE(peer.stream.is_left()) << "it has yet to read why";
    EXPECT_TRUE(sessions.empty());
    EXPECT_EQ(acceptor->sessions(), 0U);
    peer.events->on_closed(now);
  }
  EXPECT_GE(refused, 4U) << "the session, its lanes, its bounce pages, its entry";
  EXPECT_EQ(acceptor->counters().refused_no_memory, refused);
}

TEST_F(AcceptorTest, AStreamWithoutMemoryForItsHandshakeIsReset) {
  test::FailingAllocation failing(1);
  RecordingStream stream;
  const Endpoint remote{Ipv4Address{0x0a000002}, 4000};
  EXPECT_EQ(failing.during([&] { return acceptor->on_accept(now, stream, remote); }), nullptr);
  EXPECT_TRUE(failing.has_failed());
  EXPECT_EQ(acceptor->counters().refused_no_memory, 1U);
  EXPECT_TRUE(accept_of(greet()));
}

TEST_F(SendSessionTest, FailsWithoutMemoryForAnotherTag) {
  for (std::size_t nth = 1;; ++nth) {
    failures.clear();
    dialled.clear();
    make();
    accept(0);
    for (std::uint32_t tag = 0; tag < 128; ++tag) post(1, tag);
    Send& message = sends.emplace_back();
    message.start(std::span(memory).first(1), 128, 0);
    test::FailingAllocation failing(nth);
    failing.during([&] { session->post(now, message); });
    if (!failing.has_failed()) {
      EXPECT_TRUE(failures.empty());
      EXPECT_GT(nth, 2U) << "the lanes and their slots";
      break;
    }
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].code, Errc::kOutOfMemory);
  }
}

}  // namespace
}  // namespace ztcp::msg
