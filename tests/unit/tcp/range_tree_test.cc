// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/range_tree.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

constexpr std::uint32_t kNoNode = RangeTree::kNone;
constexpr SeqNum kFirstBegin(0xffff0000);  // Wraps inside the tests' range.
constexpr std::uint32_t kSpan = 10;

// Range i is [20 i, 20 i + 10), in node i.
class RangeTreeTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kNodes = 8192;

  static SeqNum begin_of(std::uint32_t i) { return kFirstBegin + 20 * i; }
  void insert(std::uint32_t i) {
    const std::uint32_t right = tree.first_ending_after(begin_of(i));
    tree[i] = {.begin = begin_of(i), .end = begin_of(i) + kSpan};
    tree.insert(i, right == kNoNode ? tree.last() : tree[right].previous);
    expected.insert(i);
  }
  void remove(std::uint32_t i) {
    tree.remove(i);
    expected.erase(i);
  }
  std::uint32_t height(std::uint32_t at) const {
    if (at == kNoNode) return 0;
    return 1 + std::max(height(tree[at].left), height(tree[at].right));
  }
  void check() const {
    ASSERT_EQ(tree.size(), expected.size());
    std::uint32_t at = tree.first();
    for (const std::uint32_t i : expected) {
      ASSERT_EQ(at, i);
      at = tree[at].next;
    }
    ASSERT_EQ(at, kNoNode);
    ASSERT_EQ(tree.last(), expected.empty() ? kNoNode : *expected.rbegin());
    // An AA tree is at most twice as high as a full one.
    ASSERT_LE(height(tree.root()), 2 * std::bit_width(tree.size()));
  }
  void check_search(std::uint32_t i) const {
    // A number inside range i, and the gap after it.
    const auto at = expected.lower_bound(i);
    const auto behind = expected.upper_bound(i);
    const std::uint32_t first = at == expected.end() ? kNoNode : *at;
    const std::uint32_t second = behind == expected.end() ? kNoNode : *behind;
    ASSERT_EQ(tree.first_ending_after(begin_of(i)), first);
    ASSERT_EQ(tree.first_ending_after(begin_of(i) + (kSpan - 1)), first);
    ASSERT_EQ(tree.first_ending_after(begin_of(i) + kSpan), second);
  }

  std::vector<Range> nodes = std::vector<Range>(kNodes);
  RangeTree tree{nodes.data()};
  std::set<std::uint32_t> expected;
};

TEST_F(RangeTreeTest, StaysFlatInAnyOrder) {
  std::vector<std::uint32_t> order(4000);
  std::iota(order.begin(), order.end(), 0U);
  const auto go_through = [&] {
    for (const std::uint32_t i : order) insert(i);
    check();
    for (std::uint32_t i = 0; i < order.size(); i += 7) check_search(i);
    // Half of them, in the order of arrival, then from the front as they are delivered.
    for (std::size_t n = 0; n < order.size(); n += 2) remove(order[n]);
    check();
    while (tree.size() > 0) {
      remove(tree.first());
      if (tree.size() % 97 == 0) check();
    }
  };
  go_through();
  std::reverse(order.begin(), order.end());
  go_through();
  // Outside in.
  for (std::uint32_t n = 0; n < order.size(); ++n)
    order[n] = n % 2 == 0 ? n / 2 : static_cast<std::uint32_t>(order.size()) - 1 - n / 2;
  go_through();
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  go_through();
}

TEST_F(RangeTreeTest, RandomOperationsAgreeWithASet) {
  std::mt19937 engine(3);
  for (int step = 0; step < 40'000; ++step) {
    const auto i = static_cast<std::uint32_t>(engine() % 600);
    if (expected.contains(i))
      remove(i);
    else
      insert(i);
    if (step % 50 == 0) check();
    check_search(static_cast<std::uint32_t>(engine() % 600));
  }
}

}  // namespace
}  // namespace ztcp::tcp
