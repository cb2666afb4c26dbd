// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/tickets.h"

#include <gtest/gtest.h>

#include "transport/verbs/control_connection.h"

namespace ztcp::verbs {
namespace {

struct TicketsTest : testing::Test {
  static Ticket ticket(int number) { return Ticket{static_cast<std::byte>(number)}; }

  ControlConnection one{Fd(), {}, ControlConnection::State::kOpen, kNever};
  ControlConnection other{Fd(), {}, ControlConnection::State::kOpen, kNever};
  Tickets tickets;
};

TEST_F(TicketsTest, EachIsGoodOnceAndForItsOwnTalk) {
  tickets.give(ticket(1), one, 0);
  tickets.give(ticket(2), other, 0);
  tickets.give(ticket(3), one, 1);
  EXPECT_EQ(tickets.take(ticket(4)), nullptr);
  EXPECT_EQ(tickets.take(ticket(2)), &other);
  EXPECT_EQ(tickets.take(ticket(2)), nullptr);
  EXPECT_EQ(tickets.take(ticket(1)), &one);
  EXPECT_EQ(tickets.take(ticket(3)), &one);
}

TEST_F(TicketsTest, ARailsNextOneIsInThePlaceOfItsLast) {
  tickets.give(ticket(1), one, 0);
  tickets.give(ticket(2), one, 0);
  EXPECT_EQ(tickets.take(ticket(1)), nullptr);
  EXPECT_EQ(tickets.take(ticket(2)), &one);
}

TEST_F(TicketsTest, NoneOutlivesItsTalk) {
  tickets.give(ticket(1), one, 0);
  tickets.give(ticket(2), one, 3);
  tickets.give(ticket(3), other, 0);
  tickets.forget(one);
  EXPECT_EQ(tickets.take(ticket(1)), nullptr);
  EXPECT_EQ(tickets.take(ticket(2)), nullptr);
  EXPECT_EQ(tickets.take(ticket(3)), &other);
}

}  // namespace
}  // namespace ztcp::verbs
