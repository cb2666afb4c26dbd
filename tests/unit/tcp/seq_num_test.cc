// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/seq_num.h"

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

TEST(SeqNum, OrderSurvivesWrapAround) {
  const SeqNum old(0xfffffff0);
  const SeqNum fresh(0x10);
  EXPECT_TRUE(old.before(fresh));
  EXPECT_TRUE(fresh.after(old));
  EXPECT_FALSE(fresh.before(old));
  EXPECT_EQ(distance(old, fresh), 0x20);
  EXPECT_EQ(distance(fresh, old), -0x20);
  EXPECT_EQ(bytes_between(old, fresh), 0x20U);
  EXPECT_EQ(later(old, fresh), fresh);
  EXPECT_EQ(earlier(old, fresh), old);
}

TEST(SeqNum, WindowIsHalfOpen) {
  const SeqNum first(0xfffffffe);
  EXPECT_TRUE(first.in_window(first, 1));
  EXPECT_FALSE(first.in_window(first, 0));
  EXPECT_TRUE(SeqNum(5).in_window(first, 8));
  EXPECT_FALSE(SeqNum(6).in_window(first, 8));
  EXPECT_FALSE(SeqNum(0xfffffffd).in_window(first, 8));
}

TEST(SeqNum, EqualIsNeitherBeforeNorAfter) {
  const SeqNum n(7);
  EXPECT_FALSE(n.before(n));
  EXPECT_FALSE(n.after(n));
  EXPECT_TRUE(n.at_or_before(n));
}

}  // namespace
}  // namespace ztcp::tcp
