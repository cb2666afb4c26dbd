// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/demux.h"

#include <bit>
#include <cassert>

namespace ztcp::tcp {

Demux::Demux(std::size_t max_entries, const std::array<std::uint64_t, 2>& secret)
    : entries_(std::bit_ceil(max_entries * 2 + 2)),
      mask_(entries_.size() - 1),
      shift_(64U - static_cast<unsigned>(std::countr_zero(entries_.size()))),
      secret_(secret) {}

void Demux::insert(const Key& key, std::uint32_t value) {
  const std::size_t at = position(key);
  assert(entries_[at].value == kNone && 2 * size_ < entries_.size());
  entries_[at] = {key, value};
  ++size_;
}

void Demux::remove(const Key& key) {
  std::size_t hole = position(key);
  if (entries_[hole].value == kNone) return;
  --size_;
  for (std::size_t at = (hole + 1) & mask_; entries_[at].value != kNone; at = (at + 1) & mask_) {
    // An entry may move into the hole unless its home lies behind it.
    const std::size_t from_home = (at - home(entries_[at].key)) & mask_;
    if (from_home >= ((at - hole) & mask_)) {
      entries_[hole] = entries_[at];
      hole = at;
    }
  }
  entries_[hole] = {};
}

}  // namespace ztcp::tcp
