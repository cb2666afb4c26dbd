// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The same ring all-reduce over two networks in turns, so that a disturbance hits both.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::perf::job {

// Bus bandwidths in GB/s.
struct Measured {
  std::uint64_t size_bytes = 0;
  std::vector<double> ours;
  std::vector<double> plain;
};

struct MeasureOptions {
  double seconds = 6;  // For all turns together.
  int turns = 5;
};

// Every rank must call it; `members` form the ring. options.max_bytes is the size, which a slow
// network reduces. Returns the same on all ranks.
Measured measure(Net& ours, int device, Net& plain, const Options& options,
                 const MeasureOptions& limits, const std::vector<int>& members,
                 Bootstrap& bootstrap);

}  // namespace ztcp::perf::job
