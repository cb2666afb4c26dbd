// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A call of any kind on every host of a group, with the result that each host should have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/reduce/gradients.h"
#include "tests/unit/reduce/group.h"
#include "transport/reduce/all_reduce.h"
#include "transport/reduce/kernels.h"

namespace ztcp::test {

class Call {
 public:
  Call(const Group& group, reduce::Collective collective, reduce::ElementType type,
       reduce::Window window, std::size_t count, std::uint32_t seed, bool is_in_place = false)
      : collective_(collective),
        type_(type),
        window_(window),
        count_(count),
        is_in_place_(is_in_place),
        from_(group.hosts()),
        to_(group.hosts()),
        jobs_(group.hosts()) {
    std::mt19937 random(seed);
    for (std::size_t rank = 0; rank < group.hosts(); ++rank) {
      from_[rank].resize((is_gather() ? own(rank).count : count) * size());
      Bytes& bytes = from_[rank];
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
        const auto word = static_cast<std::uint32_t>(random());
        std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
      }
      // Floats below 2: a NaN's bits are not promised.
      for (std::size_t top = size() - 1; top < from_[rank].size(); top += size())
        from_[rank][top] &= std::byte{0xbf};
    }
    for (std::size_t rank = 0; rank < group.hosts(); ++rank) {
      const std::size_t elements = is_scatter() ? own(rank).count : count;
      to_[rank].assign(elements * size(), std::byte{0x5a});
    }
  }

  void set_gradients() {
    for (std::size_t rank = 0; rank < from_.size(); ++rank)
      std::memcpy(from_[rank].data(), test::gradients(count_, rank).data(), from_[rank].size());
  }
  reduce::Reduction reduction = reduce::Reduction::kSum;

  void start_on(Group& group, std::size_t rank) {
    std::byte* from = from_[rank].data();
    std::byte* to = to_[rank].data();
    if (is_in_place_ && is_gather()) {
      std::ranges::copy(from_[rank], to + own(rank).begin * size());
      from = to + own(rank).begin * size();
    } else if (is_in_place_) {
      untouched_ = from_;
      to = from + (is_scatter() ? own(rank).begin * size() : 0);
    }
    const auto job = group.member(rank).start({.from = from,
                                               .to = to,
                                               .count = count_,
                                               .type = type_,
                                               .reduction = reduction,
                                               .collective = collective_,
                                               .window = window_});
    ASSERT_TRUE(job);
    ASSERT_NE(*job, nullptr);
    EXPECT_EQ((*job)->size_bytes(), count_ * size());
    jobs_[rank] = *job;
  }
  void start(Group& group) {
    for (std::size_t rank = 0; rank < group.hosts(); ++rank) start_on(group, rank);
  }
  void finish() { finish_all(jobs_); }
  reduce::Job* job(std::size_t rank) { return jobs_[rank]; }

  void expect_right() {
    for (std::size_t rank = 0; rank < to_.size(); ++rank)
      ASSERT_TRUE(result(rank) == expected(rank))
          << "rank " << rank << " of " << to_.size() << ", part " << window_.part << ", offset "
          << window_.offset << ", count " << count_;
  }
  Bytes result(std::size_t rank) const {
    if (!is_in_place_ || is_gather()) return to_[rank];
    const reduce::Range range = is_scatter() ? own(rank) : reduce::Range{0, count_};
    const std::byte* const first = from_[rank].data() + range.begin * size();
    return {first, first + range.count * size()};
  }
  Bytes expected(std::size_t rank) const {
    if (is_gather()) {
      Bytes all;
      for (const Bytes& one : from_) all.insert(all.end(), one.begin(), one.end());
      return all;
    }
    std::vector<const std::byte*> sources;
    for (const Bytes& one : untouched_.empty() ? from_ : untouched_) sources.push_back(one.data());
    Bytes sums(count_ * size());
    reduce::combine(type_, reduction, sums.data(), sources, {0, count_});
    if (!is_scatter()) return sums;
    const std::byte* const first = sums.data() + own(rank).begin * size();
    return {first, first + own(rank).count * size()};
  }
  const Bytes& from(std::size_t rank) const { return from_[rank]; }
  reduce::Range own(std::size_t rank) const {
    return reduce::part_in_window(window_, {0, count_}, rank);
  }

 private:
  bool is_gather() const { return collective_ == reduce::Collective::kAllGather; }
  bool is_scatter() const { return collective_ == reduce::Collective::kReduceScatter; }
  std::size_t size() const { return reduce::size_of(type_); }

  reduce::Collective collective_;
  reduce::ElementType type_;
  reduce::Window window_;
  std::size_t count_;
  bool is_in_place_;
  std::vector<Bytes> from_;
  std::vector<Bytes> untouched_;  // In place: the contributions.
  std::vector<Bytes> to_;
  std::vector<reduce::Job*> jobs_;
};

}  // namespace ztcp::test
