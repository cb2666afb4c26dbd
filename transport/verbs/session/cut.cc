// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/cut.h"

#include <algorithm>
#include <cassert>

namespace ztcp::verbs {

Cut cut(std::uint64_t size_bytes, std::span<const Share> shares) {
  assert(shares.size() <= kMaxQueuePairs);
  Cut out{};
  std::uint32_t taking = 0;  // A bit for each.
  for (std::uint32_t i = 0; i < shares.size(); ++i)
    if (shares[i].weight != 0) taking |= 1U << i;
  assert(taking != 0);
  // A queue pair with enough backlog already drops out, and the shares of the others are computed
  // again. The products of rates, in Mb/s, and of all outstanding bytes are far below 2^64.
  while (true) {
    std::uint64_t all_bytes = size_bytes;
    std::uint64_t all_weights = 0;
    for (std::uint32_t i = 0; i < shares.size(); ++i) {
      if ((taking >> i & 1U) == 0) continue;
      all_bytes += shares[i].backlog_bytes;
      all_weights += shares[i].weight;
    }
    std::uint32_t last = 0;
    std::uint32_t leaving = 0;
    for (std::uint32_t i = 0; i < shares.size(); ++i) {
      if ((taking >> i & 1U) == 0) continue;
      const std::uint64_t level = all_bytes * shares[i].weight / all_weights;
      const bool has_enough = level < shares[i].backlog_bytes + kLeastPieceBytes;
      if (has_enough) leaving |= 1U << i;
      out[i] = has_enough ? 0 : level - shares[i].backlog_bytes;
      last = i;
    }
    if (leaving == taking) {
      out[choose(size_bytes, shares, last)] = size_bytes;
      return out;
    }
    taking &= ~leaving;
    if (leaving == 0) break;
  }
  std::uint64_t left_bytes = size_bytes;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < shares.size(); ++i) {
    if (out[i] == 0) continue;
    out[i] = std::min(left_bytes, (out[i] + kLineBytes - 1) / kLineBytes * kLineBytes);
    left_bytes -= out[i];
    last = i;
  }
  out[last] += left_bytes;
  return out;
}

std::uint32_t choose(std::uint64_t size_bytes, std::span<const Share> shares, std::uint32_t last) {
  const auto count = static_cast<std::uint32_t>(shares.size());
  std::uint32_t best = count;
  std::uint32_t i = last;
  for (std::uint32_t n = 0; n < count; ++n) {
    i = i + 1 < count ? i + 1 : 0;
    if (shares[i].weight == 0) continue;
    // Compares fractions without dividing.
    if (best == count || (shares[i].backlog_bytes + size_bytes) * shares[best].weight <
                             (shares[best].backlog_bytes + size_bytes) * shares[i].weight)
      best = i;
  }
  assert(best != count);
  return best;
}

}  // namespace ztcp::verbs
