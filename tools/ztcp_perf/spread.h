// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the times of iterations spread. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace ztcp::perf {

// Fewer samples than this hold no 99.9th percentile.
inline constexpr std::size_t kSamplesForP999 = 1000;

// Microseconds. Percentiles are nearest ranks: the smallest sample that at least this share of the
// samples does not exceed.
struct Spread {
  std::size_t samples = 0;
  double min = 0;
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  std::optional<double> p999;  // From kSamplesForP999 samples on.
  double max = 0;
  double variation = 0;  // Standard deviation of the sample / mean; 0 for one sample.
};
// `us` are sorted in place; at least one.
Spread summarise(std::vector<float>& us);

}  // namespace ztcp::perf
