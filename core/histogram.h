// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A histogram of latencies in fixed memory: four buckets per octave from 1 us to 1 s (within 19 %),
// one per octave beyond, up to 256 s. Plain counts, owned by one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ztcp {

class Histogram {
 public:
  static constexpr std::size_t kFineOctaves = 20;  // 1 us to 1.05 s.
  static constexpr std::size_t kCoarseOctaves = 8;
  static constexpr std::size_t kBuckets = kFineOctaves * 4 + kCoarseOctaves;
  using Counts = std::array<std::uint32_t, kBuckets>;

  static constexpr std::size_t bucket_of(std::uint64_t nanoseconds) {
    const std::uint64_t quarters = nanoseconds / 250;  // Quarters of a microsecond.
    if (quarters < 8) return quarters < 4 ? 0 : static_cast<std::size_t>(quarters - 4);
    const auto octave = static_cast<std::size_t>(std::bit_width(quarters)) - 3;  // 1 us is 0.
    if (octave < kFineOctaves) {
      const auto quarter = static_cast<std::size_t>(quarters >> octave) & 3;
      return octave * 4 + quarter;
    }
    return std::min(kFineOctaves * 4 + (octave - kFineOctaves), kBuckets - 1);
  }
  // Upper end of a bucket, in nanoseconds.
  static constexpr std::uint64_t upper_ns(std::size_t bucket) {
    if (bucket >= kFineOctaves * 4)
      return std::uint64_t{1000} << (kFineOctaves + 1 + bucket - kFineOctaves * 4);
    return (std::uint64_t{250} << (bucket / 4)) * (5 + bucket % 4);
  }

  void add(std::uint64_t nanoseconds) { ++counts_[bucket_of(nanoseconds)]; }
  const Counts& counts() const { return counts_; }

 private:
  Counts counts_{};
};

// Sum of all counts.
std::uint64_t total(const Histogram::Counts& counts);
// The latency that `share` (0 to 1) of the messages did not exceed, as the upper end of its bucket,
// in nanoseconds; 0: no message.
std::uint64_t quantile_ns(const Histogram::Counts& counts, double share);

}  // namespace ztcp
