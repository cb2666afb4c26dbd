// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Statistics of iteration times. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace ztcp::perf {

// Fewer samples have no 99.9th percentile.
inline constexpr std::size_t kSamplesForP999 = 1000;

// Microseconds. Percentiles use the nearest rank: the smallest sample that is not below this share
// of the samples.
struct Spread {
  std::size_t samples = 0;
  double min = 0;
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  std::optional<double> p999;  // With at least kSamplesForP999 samples.
  double max = 0;
  double variation = 0;  // Standard deviation of the sample / mean; 0 for one sample.
};
// Samples of a run of any length in bounded memory: at the limit it drops every second sample, and
// then records fewer. Always keeps the least and the largest.
class Samples {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 22U;

  // At most `most`, an even number.
  explicit Samples(std::size_t most = kMost) : most_(most) {}
  void add(std::span<const float> us);
  std::vector<float> take();

 private:
  std::size_t most_;
  std::size_t stride_ = 1;  // Records one of this many samples.
  std::size_t added_ = 0;
  float least_ = std::numeric_limits<float>::max();
  float largest_ = 0;
  std::vector<float> kept_;
};

// `us` are sorted in place; at least one.
Spread summarise(std::vector<float>& us);

}  // namespace ztcp::perf
