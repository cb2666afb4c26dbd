// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The distribution of a ping. Pure.
#pragma once

#include <vector>

namespace ztcp::perf {

// Half round trips, in microseconds.
struct PingTimes {
  double min = 0;
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};
// `samples` are sorted in place; at least one.
PingTimes summarise(std::vector<double>& samples);

}  // namespace ztcp::perf
