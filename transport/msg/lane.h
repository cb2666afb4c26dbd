// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The lanes of a session: one for each tag, with a numbering of its own, so that the j-th message
// sent with a tag belongs to the j-th buffer posted with it, whatever becomes of other tags.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ztcp::msg {

// NCCL's tags are ranks that share a connection: a few. One tag more fails the session by name.
inline constexpr std::size_t kMaxLanes = 128;

// Each side's lanes in the order in which it first heard of their tags; none ever goes. `Lane` is
// trivial and has a tag.
template <class Lane>
class Lanes {
 public:
  // Null when there are kMaxLanes others.
  Lane* find_or_add(std::uint32_t tag) {
    if (last_ != nullptr && last_->tag == tag) [[likely]]
      return last_;
    return find_or_add_slowly(tag);
  }

  std::size_t size() const { return size_; }
  Lane& operator[](std::size_t index) { return lanes_[index]; }
  std::size_t index_of(const Lane& lane) const {
    return static_cast<std::size_t>(&lane - lanes_.get());
  }
  Lane* begin() { return lanes_.get(); }
  Lane* end() { return lanes_.get() + size_; }

 private:
  Lane* find_or_add_slowly(std::uint32_t tag) {
    for (Lane& lane : *this)
      if (lane.tag == tag) return last_ = &lane;
    if (size_ == kMaxLanes) return nullptr;
    Lane& added = lanes_[size_++];
    added = Lane{};
    added.tag = tag;
    return last_ = &added;
  }

  Lane* last_ = nullptr;  // Used last: nearly always the only one.
  std::size_t size_ = 0;
  // Not touched beyond those that are used.
  std::unique_ptr<Lane[]> lanes_ = std::make_unique_for_overwrite<Lane[]>(kMaxLanes);
};

// Some of a session's lanes, by index.
class LaneSet {
 public:
  bool empty() const { return (words_[0] | words_[1]) == 0; }
  void add(std::size_t lane) { words_[lane / 64] |= std::uint64_t{1} << (lane % 64); }
  void remove(std::size_t lane) { words_[lane / 64] &= ~(std::uint64_t{1} << (lane % 64)); }
  // The least. Only if not empty.
  std::size_t first() const {
    return static_cast<std::size_t>(words_[0] != 0 ? std::countr_zero(words_[0])
                                                   : 64 + std::countr_zero(words_[1]));
  }

 private:
  std::array<std::uint64_t, kMaxLanes / 64> words_{};
};
static_assert(kMaxLanes == 128);

}  // namespace ztcp::msg
