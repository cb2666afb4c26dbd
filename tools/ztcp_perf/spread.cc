// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/spread.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ztcp::perf {
namespace {

// Integer arithmetic, so that rounding never shifts a rank: of 1000 samples the 999th is the 99.9th
// percentile.
double percentile(const std::vector<float>& sorted, std::size_t thousandths) {
  const std::size_t rank = (sorted.size() * thousandths + 999) / 1000;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

double standard_deviation(const std::vector<float>& samples, double mean) {
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / static_cast<double>(samples.size() - 1));
}

}  // namespace

void Samples::add(std::span<const float> us) {
  for (const float one : us) {
    least_ = std::min(least_, one);
    largest_ = std::max(largest_, one);
    if (added_++ % stride_ != 0) continue;
    kept_.push_back(one);
    if (kept_.size() < most_) continue;
    for (std::size_t i = 0; i < most_ / 2; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(most_ / 2);
    stride_ *= 2;
  }
}

std::vector<float> Samples::take() {
  if (stride_ > 1) kept_.insert(kept_.end(), {least_, largest_});
  return std::move(kept_);
}

Spread summarise(std::vector<float>& us) {
  std::sort(us.begin(), us.end());
  double sum = 0;
  for (const double sample : us) sum += sample;
  Spread spread;
  spread.samples = us.size();
  spread.min = us.front();
  spread.mean = sum / static_cast<double>(us.size());
  spread.p50 = percentile(us, 500);
  spread.p99 = percentile(us, 990);
  if (us.size() >= kSamplesForP999) spread.p999 = percentile(us, 999);
  spread.max = us.back();
  if (us.size() > 1 && spread.mean > 0)
    spread.variation = standard_deviation(us, spread.mean) / spread.mean;
  return spread;
}

}  // namespace ztcp::perf
