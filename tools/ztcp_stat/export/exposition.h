// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Metrics for Prometheus from the statistics pages of a host. docs/metrics.md lists them; names of
// counters come from transport/stats/counters.h. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "transport/stats/snapshot.h"

namespace ztcp::stat {

// Name, type and help of every metric, for the documents' test.
struct MetricText {
  std::string name;
  std::string type;
  std::string help;
};
std::vector<MetricText> all_metrics();

// The text of all processes; of one that has ended only the metrics about the process. Series of
// two processes differ by their pid. `damaged`: pages that could not be read.
std::string exposition(std::span<const stats::Snapshot> processes, std::size_t damaged);

}  // namespace ztcp::stat
