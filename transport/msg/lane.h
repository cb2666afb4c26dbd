// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The lanes of a session: one per tag, with its own numbering, so that the j-th message sent with a
// tag belongs to the j-th buffer posted with it, independent of other tags.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace ztcp::msg {

// NCCL's tags are the ranks that share a connection, a few; or, where its bootstrap runs over the
// plugin (NCCL_OOB_NET_ENABLE=1), the steps of a ring: one less than the job has ranks. One tag
// more fails the session by name.
inline constexpr std::size_t kMaxLanes = std::size_t{1} << 18;

// Each side's lanes in the order in which it first saw their tags. Lanes are never removed, because
// both ends continue their numbering, and never move. `Lane` is trivial and has a tag. Memory for
// the first 128 exists from the start; it doubles as more are added.
template <class Lane>
class Lanes {
 public:
  // Null when there are kMaxLanes others, or no memory for one more.
  Lane* find_or_add(std::uint32_t tag) {
    if (last_ != nullptr && last_->tag == tag) [[likely]]
      return last_;
    return find_or_add_slowly(tag);
  }

  std::size_t size() const { return size_; }
  bool is_full() const { return size_ == kMaxLanes; }
  Lane& operator[](std::size_t index) {
    const auto block = static_cast<std::size_t>(std::bit_width(index / kFirst));
    return blocks_[block][block == 0 ? index : index - kFirst * (std::size_t{1} << (block - 1))];
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t i = 0; i < size_; ++i) visit((*this)[i]);
  }

 private:
  static constexpr std::size_t kFirst = 128;
  // With 128, 128, 256, 512, ... lanes.
  static constexpr std::size_t kBlocks = std::countr_zero(kMaxLanes / kFirst) + 1;

  Lane* find_or_add_slowly(std::uint32_t tag) {
    if (Lane* const known = find(tag)) return last_ = known;
    if (size_ == capacity_ && !grow()) return nullptr;
    Lane& added = (*this)[size_++];
    added = Lane{};
    added.tag = tag;
    if (slots_ != nullptr) enter(size_ - 1);
    return last_ = &added;
  }

  // In the first block by linear search; with more blocks by hash slots.
  Lane* find(std::uint32_t tag) {
    if (slots_ == nullptr) {
      for (std::size_t i = 0; i < size_; ++i)
        if (blocks_[0][i].tag == tag) return &blocks_[0][i];
      return nullptr;
    }
    for (std::size_t slot = slot_of(tag); slots_[slot] != 0; slot = (slot + 1) & slot_mask_)
      if (Lane& lane = (*this)[slots_[slot] - 1]; lane.tag == tag) return &lane;
    return nullptr;
  }

  // A memory shortage is a return value: callers make no other allocation after their start.
  bool grow() {
    if (is_full()) return false;
    const std::size_t slots = 4 * capacity_;  // At most half of them are used.
    std::unique_ptr<Lane[]> block(new (std::nothrow) Lane[capacity_]);
    std::unique_ptr<std::uint32_t[]> table(new (std::nothrow) std::uint32_t[slots]());
    if (block == nullptr || table == nullptr) return false;
    blocks_[static_cast<std::size_t>(std::bit_width(capacity_ / kFirst))] = std::move(block);
    capacity_ *= 2;
    slots_ = std::move(table);
    slot_mask_ = slots - 1;
    for (std::size_t i = 0; i < size_; ++i) enter(i);
    return true;
  }

  // NCCL's tags are small numbers: a multiplication spreads them.
  std::size_t slot_of(std::uint32_t tag) const { return (tag * 0x9e3779b1U >> 7U) & slot_mask_; }
  void enter(std::size_t index) {
    std::size_t slot = slot_of((*this)[index].tag);
    while (slots_[slot] != 0) slot = (slot + 1) & slot_mask_;
    slots_[slot] = static_cast<std::uint32_t>(index + 1);
  }

  Lane* last_ = nullptr;  // The last one used: nearly always the only one.
  std::size_t size_ = 0;
  std::size_t capacity_ = kFirst;
  // Memory beyond the lanes in use is not touched.
  std::array<std::unique_ptr<Lane[]>, kBlocks> blocks_{
      std::make_unique_for_overwrite<Lane[]>(kFirst)};
  std::unique_ptr<std::uint32_t[]> slots_;  // Index plus one, by tag; 0: free. Null: one block.
  std::size_t slot_mask_ = 0;
};

// A list of some of a session's lanes, in the order of addition. `Lane` has list_before, list_after
// and is_listed.
template <class Lane>
class LaneList {
 public:
  bool empty() const { return first_ == nullptr; }
  Lane& first() const { return *first_; }  // Only if not empty.
  void add(Lane& lane) {
    if (lane.is_listed) return;
    lane.is_listed = true;
    lane.list_before = last_;
    lane.list_after = nullptr;
    (last_ == nullptr ? first_ : last_->list_after) = &lane;
    last_ = &lane;
  }
  void remove(Lane& lane) {
    if (!lane.is_listed) return;
    lane.is_listed = false;
    (lane.list_before == nullptr ? first_ : lane.list_before->list_after) = lane.list_after;
    (lane.list_after == nullptr ? last_ : lane.list_after->list_before) = lane.list_before;
  }

 private:
  Lane* first_ = nullptr;
  Lane* last_ = nullptr;
};

}  // namespace ztcp::msg
