// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/lane.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

struct TestLane {
  std::uint32_t tag;
  int value;
  bool is_listed;
  TestLane* list_before;
  TestLane* list_after;
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
  EXPECT_EQ(&lanes[1], other);
}

TEST(Lanes, DoNotMoveAsMoreAreAdded) {
  Lanes<TestLane> lanes;
  std::vector<TestLane*> all;
  for (std::uint32_t tag = 0; tag < 5000; ++tag) {
    all.push_back(lanes.find_or_add(tag * 31));
    all.back()->value = static_cast<int>(tag);
    ASSERT_EQ(lanes.size(), tag + 1);
  }
  for (std::uint32_t tag = 0; tag < 5000; ++tag) {
    ASSERT_EQ(lanes.find_or_add(tag * 31), all[tag]);
    ASSERT_EQ(&lanes[tag], all[tag]);
    ASSERT_EQ(all[tag]->tag, tag * 31);
    ASSERT_EQ(all[tag]->value, static_cast<int>(tag));
  }
  std::size_t visited = 0;
  lanes.for_each([&](const TestLane& lane) { visited += lane.tag == visited * 31 ? 1 : 0; });
  EXPECT_EQ(visited, 5000U);
}

TEST(Lanes, AreLimited) {
  Lanes<TestLane> lanes;
  for (std::uint32_t tag = 0; tag < kMaxLanes; ++tag) ASSERT_NE(lanes.find_or_add(tag), nullptr);
  EXPECT_TRUE(lanes.is_full());
  EXPECT_EQ(lanes.find_or_add(kMaxLanes), nullptr);
  EXPECT_EQ(lanes.find_or_add(7)->tag, 7U);
  EXPECT_EQ(lanes.find_or_add(kMaxLanes - 1)->tag, kMaxLanes - 1);
}

TEST(LaneList, KeepsTheOrderAndHoldsEachOnce) {
  std::array<TestLane, 4> lanes{};
  LaneList<TestLane> list;
  EXPECT_TRUE(list.empty());
  for (const std::size_t i : {3U, 0U, 2U, 0U, 1U}) list.add(lanes[i]);
  list.remove(lanes[2]);
  list.remove(lanes[2]);
  for (const std::size_t i : {3U, 0U, 1U}) {
    ASSERT_FALSE(list.empty());
    EXPECT_EQ(&list.first(), &lanes[i]);
    list.remove(lanes[i]);
  }
  EXPECT_TRUE(list.empty());
  list.add(lanes[2]);
  EXPECT_EQ(&list.first(), &lanes[2]);
}

}  // namespace
}  // namespace ztcp::msg
