// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/lane.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

struct TestLane {
  std::uint32_t tag;
  int value;
};

TEST(Lanes, AreFoundByTagAndBeginEmpty) {
  Lanes<TestLane> lanes;
  TestLane* const zero = lanes.find_or_add(0);
  ASSERT_NE(zero, nullptr);
  EXPECT_EQ(zero->value, 0);
  zero->value = 3;
  TestLane* const other = lanes.find_or_add(0xffffffff);
  EXPECT_EQ(other->value, 0);
  EXPECT_EQ(lanes.find_or_add(0), zero);
  EXPECT_EQ(zero->value, 3);
  EXPECT_EQ(lanes.find_or_add(0xffffffff), other);
  EXPECT_EQ(lanes.size(), 2U);
  EXPECT_EQ(lanes.index_of(*other), 1U);
  EXPECT_EQ(&lanes[1], other);
}

TEST(Lanes, AreLimitedAndStayWhereTheyAre) {
  Lanes<TestLane> lanes;
  std::vector<TestLane*> all;
  for (std::uint32_t tag = 0; tag < kMaxLanes; ++tag) all.push_back(lanes.find_or_add(tag * 31));
  EXPECT_EQ(lanes.find_or_add(1), nullptr);
  EXPECT_EQ(lanes.find_or_add(2), nullptr);
  for (std::uint32_t tag = 0; tag < kMaxLanes; ++tag) {
    EXPECT_EQ(lanes.find_or_add(tag * 31), all[tag]);
    EXPECT_EQ(all[tag]->tag, tag * 31);
  }
  EXPECT_EQ(lanes.size(), kMaxLanes);
}

TEST(LaneSet, GivesTheLeastFirst) {
  LaneSet set;
  EXPECT_TRUE(set.empty());
  for (const std::size_t lane : {127U, 0U, 64U, 63U, 64U}) set.add(lane);
  for (const std::size_t lane : {0U, 63U, 64U, 127U}) {
    ASSERT_FALSE(set.empty());
    EXPECT_EQ(set.first(), lane);
    set.remove(lane);
  }
  EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace ztcp::msg
