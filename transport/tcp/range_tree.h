// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Disjoint ranges of sequence numbers in order: an AA tree (Andersson 1993), threaded, over nodes
// in a pool shared by all connections. Find, insert and remove take logarithmic time in the number
// of ranges, in any order of arrival; otherwise a peer could exhaust the CPU (CVE-2018-5390). Owned
// by a Reassembly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

struct Range {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  SeqNum begin;
  SeqNum end;
  std::uint32_t first = kNone;  // Chain of pieces, in order, without gaps.
  std::uint32_t last = kNone;
  // RangeTree's: the ranges before and after, and the children.
  std::uint32_t previous = kNone;
  std::uint32_t next = kNone;
  std::uint32_t left = kNone;
  std::uint32_t right = kNone;
  // Reassembly's: neighbours in the list of ranges that as many ACKs have reported.
  std::uint32_t line_previous = kNone;
  std::uint32_t line_next = kNone;
  std::uint8_t level = 0;
  std::uint8_t told = 0;  // ACKs that reported it since it last grew, at most
                          // Reassembly::kEnoughAcks.
};

class RangeTree {
 public:
  static constexpr std::uint32_t kNone = Range::kNone;

  explicit RangeTree(Range* nodes) : nodes_(nodes) {}

  std::size_t size() const { return size_; }
  std::uint32_t first() const { return first_; }
  std::uint32_t last() const { return last_; }
  std::uint32_t root() const { return root_; }
  Range& operator[](std::uint32_t i) const { return nodes_[i]; }

  // The first range that ends after `seq`. kNone: all end before it, as is the case for most
  // arrivals.
  std::uint32_t first_ending_after(SeqNum seq) const {
    if (last_ == kNone || !nodes_[last_].end.after(seq)) return kNone;
    return search(seq);
  }
  // `node` has its begin and end set; it belongs after `previous` (kNone: before all).
  void insert(std::uint32_t node, std::uint32_t previous);
  void remove(std::uint32_t node);

 private:
  std::uint32_t search(SeqNum seq) const;
  std::uint8_t level(std::uint32_t node) const { return node == kNone ? 0 : nodes_[node].level; }
  std::uint32_t skew(std::uint32_t top);
  std::uint32_t split(std::uint32_t top);
  std::uint32_t insert_below(std::uint32_t top, std::uint32_t node);
  std::uint32_t remove_below(std::uint32_t top, std::uint32_t node);
  std::uint32_t take_out(std::uint32_t node);
  std::uint32_t rebalance(std::uint32_t top);

  Range* nodes_;
  std::uint32_t root_ = kNone;
  std::uint32_t first_ = kNone;
  std::uint32_t last_ = kNone;
  std::size_t size_ = 0;
};

}  // namespace ztcp::tcp
