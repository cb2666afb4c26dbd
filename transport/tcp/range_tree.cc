// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/range_tree.h"

#include <algorithm>

namespace ztcp::tcp {

std::uint32_t RangeTree::search(SeqNum seq) const {
  std::uint32_t found = kNone;
  for (std::uint32_t at = root_; at != kNone;) {
    if (nodes_[at].end.after(seq)) {
      found = at;
      at = nodes_[at].left;
    } else {
      at = nodes_[at].right;
    }
  }
  return found;
}

void RangeTree::insert(std::uint32_t node, std::uint32_t previous) {
  Range& range = nodes_[node];
  range.left = range.right = kNone;
  range.level = 1;
  range.previous = previous;
  range.next = previous == kNone ? first_ : nodes_[previous].next;
  (previous == kNone ? first_ : nodes_[previous].next) = node;
  (range.next == kNone ? last_ : nodes_[range.next].previous) = node;
  root_ = insert_below(root_, node);
  ++size_;
}

void RangeTree::remove(std::uint32_t node) {
  const Range& range = nodes_[node];
  (range.previous == kNone ? first_ : nodes_[range.previous].next) = range.next;
  (range.next == kNone ? last_ : nodes_[range.next].previous) = range.previous;
  root_ = remove_below(root_, node);
  --size_;
}

// Restores that no left child is on its parent's level: it becomes the parent.
std::uint32_t RangeTree::skew(std::uint32_t top) {
  if (top == kNone) return top;
  const std::uint32_t left = nodes_[top].left;
  if (level(left) != nodes_[top].level) return top;
  nodes_[top].left = nodes_[left].right;
  nodes_[left].right = top;
  return left;
}

// Restores that no three in a row are on one level: the middle one moves up.
std::uint32_t RangeTree::split(std::uint32_t top) {
  if (top == kNone) return top;
  const std::uint32_t right = nodes_[top].right;
  if (right == kNone || level(nodes_[right].right) != nodes_[top].level) return top;
  nodes_[top].right = nodes_[right].left;
  nodes_[right].left = top;
  ++nodes_[right].level;
  return right;
}

std::uint32_t RangeTree::insert_below(std::uint32_t top, std::uint32_t node) {
  if (top == kNone) return node;
  Range& range = nodes_[top];
  if (nodes_[node].begin.before(range.begin))
    range.left = insert_below(range.left, node);
  else
    range.right = insert_below(range.right, node);
  return split(skew(top));
}

std::uint32_t RangeTree::remove_below(std::uint32_t top, std::uint32_t node) {
  if (top == node) {
    top = take_out(node);
  } else if (nodes_[node].begin.before(nodes_[top].begin)) {
    nodes_[top].left = remove_below(nodes_[top].left, node);
  } else {
    nodes_[top].right = remove_below(nodes_[top].right, node);
  }
  return rebalance(top);
}

// Replaces `node` by its neighbour in order, which has the level of a leaf.
std::uint32_t RangeTree::take_out(std::uint32_t node) {
  const Range range = nodes_[node];
  if (range.left == kNone && range.right == kNone) return kNone;
  const bool from_right = range.left == kNone;
  std::uint32_t heir = from_right ? range.right : range.left;
  while ((from_right ? nodes_[heir].left : nodes_[heir].right) != kNone)
    heir = from_right ? nodes_[heir].left : nodes_[heir].right;
  const std::uint32_t left = from_right ? kNone : remove_below(range.left, heir);
  const std::uint32_t right = from_right ? remove_below(range.right, heir) : range.right;
  nodes_[heir].left = left;
  nodes_[heir].right = right;
  nodes_[heir].level = range.level;
  return heir;
}

std::uint32_t RangeTree::rebalance(std::uint32_t top) {
  if (top == kNone) return top;
  const auto wanted =
      static_cast<std::uint8_t>(1 + std::min(level(nodes_[top].left), level(nodes_[top].right)));
  if (wanted < nodes_[top].level) {
    nodes_[top].level = wanted;
    const std::uint32_t right = nodes_[top].right;
    if (right != kNone) nodes_[right].level = std::min(nodes_[right].level, wanted);
  }
  top = skew(top);
  Range& range = nodes_[top];
  range.right = skew(range.right);
  if (range.right != kNone) nodes_[range.right].right = skew(nodes_[range.right].right);
  top = split(top);
  nodes_[top].right = split(nodes_[top].right);
  return top;
}

}  // namespace ztcp::tcp
