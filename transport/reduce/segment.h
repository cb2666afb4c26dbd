// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A segment of a vector on its way: the sizes of its parts, and the memory of the slot that it
// occupies. A vector of any length takes several segments of bounded size, one after the other and
// several at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/reduce/element.h"
#include "transport/reduce/peers.h"

namespace ztcp::reduce {

// How the hosts share the work.
enum class Exchange : std::uint8_t {
  kWhole,      // Each host sends everything to all and reduces everything: one hop.
  kScattered,  // Each host reduces its part and sends the result to all: two hops, fewer bytes.
  kGathered,   // All-gather: each host sends its part to all.
  kOwned,      // Reduce-scatter: each host reduces its part and keeps the result.
};

// The part of `count` elements that host `part` of `hosts` reduces. Starts on whole lines of
// memory, so the last ones may be shorter or empty.
inline constexpr std::size_t kLineElements = 64;
constexpr Range part_of(std::size_t count, std::size_t part, std::size_t hosts) {
  const std::size_t lines = ((count + hosts - 1) / hosts + kLineElements - 1) / kLineElements;
  const std::size_t each = lines * kLineElements;
  const std::size_t begin = std::min(part * each, count);
  return {begin, std::min(each, count - begin)};
}

// Most bytes of a message, as a number that does not depend on the type.
constexpr std::size_t piece_bytes(std::size_t hosts) {
  constexpr std::size_t kMost = 128 << 10U;
  constexpr std::size_t kAllHosts = 1 << 20U;
  constexpr std::size_t kLeast = 16 << 10U;
  constexpr std::size_t kStep = 4 << 10U;
  return std::clamp(kAllHosts / hosts / kStep * kStep, kLeast, kMost);
}

// The scratch memory of one segment, in pieces of piece_bytes().
class Slot {
 public:
  Slot(std::byte* memory, std::size_t hosts) : memory_(memory), hosts_(hosts) {}
  static constexpr std::size_t bytes(std::size_t hosts, Wire wire) {
    return piece_bytes(hosts) * (wire == Wire::kAsIs ? hosts : 3 * hosts);
  }
  // The contribution of another host.
  std::byte* contribution(std::size_t host) const { return piece(host); }
  // With a rounding wire: this host's contribution to another one's part, and that host's sum.
  std::byte* rounded(std::size_t host) const { return piece(hosts_ + host); }
  std::byte* sum(std::size_t host) const { return piece(2 * hosts_ + host); }

 private:
  std::byte* piece(std::size_t number) const { return memory_ + number * piece_bytes(hosts_); }

  std::byte* memory_;
  std::size_t hosts_;
};

}  // namespace ztcp::reduce
