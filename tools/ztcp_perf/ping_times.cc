// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/ping_times.h"

#include <algorithm>
#include <cmath>

namespace ztcp::perf {

PingTimes summarise(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  // Nearest rank: the smallest sample that at least this share does not exceed.
  const auto percentile = [&](double share) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size())));
    return samples[std::max<std::size_t>(rank, 1) - 1];
  };
  double sum = 0;
  for (const double sample : samples) sum += sample;
  return {samples.front(), sum / static_cast<double>(samples.size()), percentile(0.5),
          percentile(0.99), samples.back()};
}

}  // namespace ztcp::perf
