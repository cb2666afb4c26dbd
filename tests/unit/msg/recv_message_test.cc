// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/recv_message.h"

#include <set>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

TEST(UnexpectedPool, IsLimitedAndResetsEachMessage) {
  UnexpectedPool pool;
  std::set<UnexpectedMessage*> all;
  for (std::size_t i = 0; i < kMaxUnexpected; ++i) {
    UnexpectedMessage* const message = pool.take();
    ASSERT_NE(message, nullptr);
    EXPECT_FALSE(message->has_begun);
    message->begin(5);
    message->reserved_bytes = 5;
    all.insert(message);
  }
  EXPECT_EQ(all.size(), kMaxUnexpected);
  EXPECT_EQ(pool.take(), nullptr);
  pool.give_back(**all.rbegin());
  UnexpectedMessage* const again = pool.take();
  EXPECT_EQ(again, *all.rbegin());
  EXPECT_FALSE(again->has_begun);
  EXPECT_EQ(again->reserved_bytes, 0U);
}

TEST(UnexpectedPool, CountsWholeMessages) {
  UnexpectedPool pool;
  EXPECT_EQ(pool.count_whole(), 0U);
  UnexpectedMessage* const empty = pool.take();
  UnexpectedMessage* const part = pool.take();
  static_cast<void>(pool.take());  // None of its bytes has arrived.
  empty->begin(0);
  part->begin(10);
  EXPECT_EQ(pool.count_whole(), 1U);
  part->held_bytes = 10;
  EXPECT_EQ(pool.count_whole(), 2U);
  pool.give_back(*empty);
  EXPECT_EQ(pool.count_whole(), 1U);
}

TEST(RecvLane, KnowsMessagesDoneBeyondTheOldest) {
  RecvLane lane{};
  lane.received = 100;
  lane.posted = 132;
  lane.done_beyond = 1U << 3 | 1U << 31;
  EXPECT_TRUE(lane.is_finished(99));
  EXPECT_FALSE(lane.is_finished(100));
  EXPECT_TRUE(lane.is_finished(103));
  EXPECT_TRUE(lane.is_finished(131));
  EXPECT_TRUE(lane.is_in_window(131));
  EXPECT_FALSE(lane.is_in_window(132));
  EXPECT_FALSE(lane.has_room());
}

TEST(RecvLane, KeepsTheOrderOfWaitingPosts) {
  RecvLane lane{};
  RecvMessage first;
  RecvMessage second;
  EXPECT_TRUE(lane.has_room());
  lane.wait(first);
  lane.wait(second);
  EXPECT_FALSE(lane.has_room()) << "no post overtakes waiting ones";
  EXPECT_EQ(lane.waiting_first, &first);
  EXPECT_EQ(first.next(), &second);
  EXPECT_EQ(second.next(), nullptr);
}

}  // namespace
}  // namespace ztcp::msg
