// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/histogram.h"

#include <cmath>

namespace ztcp {

std::uint64_t total(const Histogram::Counts& counts) {
  std::uint64_t sum = 0;
  for (const std::uint32_t count : counts) sum += count;
  return sum;
}

std::uint64_t quantile_ns(const Histogram::Counts& counts, double share) {
  const std::uint64_t all = total(counts);
  if (all == 0) return 0;
  const auto rank =
      static_cast<std::uint64_t>(std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(all)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    seen += counts[bucket];
    if (seen >= std::max<std::uint64_t>(rank, 1)) return Histogram::upper_ns(bucket);
  }
  return Histogram::upper_ns(counts.size() - 1);
}

}  // namespace ztcp
