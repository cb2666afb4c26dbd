// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/chunk_map.h"

#include <cassert>

namespace ztcp::msg {
namespace {

// Calls visit(word index, mask) for each word that [first, last) touches.
template <class Visit>
void for_each_word(std::uint64_t first, std::uint64_t last, Visit&& visit) {
  assert(last <= ChunkMap::kMaxUnits);
  while (first < last) {
    const std::uint64_t bit = first % 64;
    const std::uint64_t span = std::min<std::uint64_t>(64 - bit, last - first);
    const std::uint64_t ones = span == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << span) - 1;
    visit(static_cast<std::size_t>(first / 64), ones << bit);
    first += span;
  }
}

}  // namespace

std::uint64_t ChunkMap::count(std::uint64_t first, std::uint64_t last) const {
  std::uint64_t n = 0;
  for_each_word(first, last, [&](std::size_t i, std::uint64_t mask) {
    n += static_cast<std::uint64_t>(std::popcount(words_[i] & mask));
  });
  return n;
}

std::uint64_t ChunkMap::set(std::uint64_t first, std::uint64_t last) {
  std::uint64_t n = 0;
  for_each_word(first, last, [&](std::size_t i, std::uint64_t mask) {
    n += static_cast<std::uint64_t>(std::popcount(mask & ~words_[i]));
    words_[i] |= mask;
  });
  return n;
}

}  // namespace ztcp::msg
