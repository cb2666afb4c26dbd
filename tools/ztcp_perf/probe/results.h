// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Everything a probe has found. Values only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_perf/probe/facts.h"

namespace ztcp::perf::probe {

// Half round trips of small messages, in microseconds.
struct Latency {
  std::size_t samples = 0;
  double min_us = 0;
  double p50_us = 0;
  double p99_us = 0;
};

// One way between two NICs.
struct Direction {
  double gbit_per_s = 0;
  // Share of the sender's bytes that it sent again; absent: the transport does not tell.
  std::optional<double> resent;
};

// One rail of a pair of hosts: the NICs with the same place in both hosts' lists.
struct PairResult {
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t rail = 0;
  std::string failure;  // Not empty: nothing was measured.
  Latency latency;
  Direction forward;           // From a to b.
  Direction backward;          // From b to a.
  double both_gbit_per_s = 0;  // Sum of both directions, both sending at once.
};

struct Results {
  std::vector<Host> hosts;
  std::vector<PairResult> pairs;
  std::size_t rails = 0;
  std::size_t rounds = 0;
  double took_s = 0;
};

}  // namespace ztcp::perf::probe
