// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/intrusive_list.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

struct OtherTag;
struct Node : ListHook<>, ListHook<OtherTag> {
  explicit Node(int v) : value(v) {}
  int value;
};

template <class List>
std::vector<int> values(List& list) {
  std::vector<int> result;
  for (Node& node : list) result.push_back(node.value);
  return result;
}

TEST(IntrusiveList, KeepsOrder) {
  Node a(1), b(2), c(3), d(4);
  IntrusiveList<Node> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(b);
  list.push_back(d);
  list.push_front(a);
  list.insert_before(d, c);
  EXPECT_EQ(values(list), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(list.front().value, 1);
  EXPECT_EQ(list.back().value, 4);
  list.rotate();
  EXPECT_EQ(values(list), (std::vector{2, 3, 4, 1}));
  list.remove(c);
  EXPECT_FALSE(c.ListHook<>::is_linked());
  EXPECT_EQ(values(list), (std::vector{2, 4, 1}));
  EXPECT_EQ(list.pop_front(), &b);
  list.clear();
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(a.ListHook<>::is_linked());
}

TEST(IntrusiveList, AnObjectMayBeInTwoLists) {
  Node a(1), b(2);
  IntrusiveList<Node> list;
  IntrusiveList<Node, OtherTag> other;
  list.push_back(a);
  list.push_back(b);
  other.push_back(b);
  other.push_back(a);
  list.remove(a);
  EXPECT_EQ(values(list), (std::vector{2}));
  EXPECT_EQ(values(other), (std::vector{2, 1}));
}

TEST(IntrusiveList, ADestroyedObjectLeavesItsList) {
  IntrusiveList<Node> list;
  Node a(1);
  {
    Node b(2);
    list.push_back(b);
    list.push_back(a);
  }
  EXPECT_EQ(values(list), (std::vector{1}));
}

TEST(IntrusiveList, ADestroyedListUnlinksItsObjects) {
  Node a(1);
  {
    IntrusiveList<Node> list;
    list.push_back(a);
  }
  EXPECT_FALSE(a.ListHook<>::is_linked());
}

TEST(IntrusiveList, AnIteratorSurvivesTheRemovalOfOtherObjects) {
  std::vector<Node> nodes;
  for (int i = 0; i < 6; ++i) nodes.emplace_back(i);
  IntrusiveList<Node> list;
  for (Node& node : nodes) list.push_back(node);
  for (auto it = list.begin(); it != list.end();) {
    Node& node = *it++;
    if (node.value % 2 == 0) list.remove(node);
  }
  EXPECT_EQ(values(list), (std::vector{1, 3, 5}));
}

}  // namespace
}  // namespace ztcp
