// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the times of iterations spread. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
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
// Times of a run of any length in bounded memory: beyond the most it drops every second sample, and
// keeps as few of those that follow. The least and the largest of all are always there.
class Samples {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 22U;

  // At most `most`, an even number.
  explicit Samples(std::size_t most = kMost) : most_(most) {}
  void add(std::span<const float> us);
  std::vector<float> take();

 private:
  std::size_t most_;
  std::size_t stride_ = 1;  // Of so many samples one is kept.
  std::size_t added_ = 0;
  float least_ = std::numeric_limits<float>::max();
  float largest_ = 0;
  std::vector<float> kept_;
};

// `us` are sorted in place; at least one.
Spread summarise(std::vector<float>& us);

}  // namespace ztcp::perf
