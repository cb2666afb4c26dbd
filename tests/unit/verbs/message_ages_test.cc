// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/message_ages.h"

#include <gtest/gtest.h>

namespace ztcp::verbs {
namespace {

TimePoint at(int seconds) { return TimePoint(std::chrono::seconds(seconds)); }

TEST(MessageAges, AnIdleConnectionHasNoOldestMessage) {
  MessageAges ages;
  EXPECT_EQ(ages.update(at(1), 0, 0), TimePoint{});
  EXPECT_EQ(ages.update(at(2), 5, 5), TimePoint{});
}

TEST(MessageAges, AMessageIsAsOldAsItsFirstLook) {
  MessageAges ages;
  EXPECT_EQ(ages.update(at(1), 3, 2), at(1));
  EXPECT_EQ(ages.update(at(2), 3, 2), at(1));
  EXPECT_EQ(ages.update(at(9), 3, 2), at(1));
}

TEST(MessageAges, TheNextMessageIsTheOldestOneOnceTheFirstIsDone) {
  MessageAges ages;
  ages.update(at(1), 1, 0);
  ages.update(at(2), 2, 0);
  EXPECT_EQ(ages.update(at(3), 3, 1), at(2));
  EXPECT_EQ(ages.update(at(4), 3, 2), at(3));
  EXPECT_EQ(ages.update(at(5), 3, 3), TimePoint{});
}

TEST(MessageAges, AConnectionThatMovesAllTheTimeHasYoungMessages) {
  MessageAges ages;
  for (int i = 1; i < 100; ++i)
    EXPECT_EQ(ages.update(at(i), static_cast<std::uint64_t>(1000 * i + 8),
                          static_cast<std::uint64_t>(1000 * i)),
              at(i));
}

TEST(MessageAges, ManyLooksDuringOneMessageKeepItsAge) {
  MessageAges ages;
  for (int i = 1; i < 100; ++i)
    EXPECT_EQ(ages.update(at(i), static_cast<std::uint64_t>(i), 0), at(1));
  // Those beyond the room are younger than they were.
  EXPECT_LE(ages.update(at(100), 99, 50), at(99));
  EXPECT_GT(ages.update(at(101), 99, 50), at(50));
}

}  // namespace
}  // namespace ztcp::verbs
