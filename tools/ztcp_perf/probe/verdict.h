// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Judges the results of a probe: measurements are compared with the median of all NICs, and their
// common cause is named. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_perf/probe/results.h"

namespace ztcp::perf::probe {

struct Limits {
  double slow = 0.7;          // A bandwidth below this share of the median is bad.
  double late = 2;            // A latency beyond this multiple of the median is bad.
  double resent = 0.005;      // A larger share of bytes sent again is bad.
  double min_gbit_per_s = 0;  // A lower bandwidth is bad at any median.
  double max_latency_us = 0;  // A higher latency is bad; 0: no limit.
};
// Latencies closer to the median than this are never bad: the difference is in the hosts' load.
inline constexpr double kLatencyNoiseUs = 15;

// `reference` is the median that a measurement is compared with.
bool is_slow_in(const Limits& limits, double gbit_per_s, double reference);
bool is_late_in(const Limits& limits, double us, double reference);

struct Finding {
  bool is_fault = true;
  std::string kind;  // "unreachable", "version", "bandwidth": for scripts.
  std::string text;  // A sentence without a full stop.
  std::optional<std::size_t> host;
  std::optional<std::size_t> rail;
};

// The medians that measurements are compared with, by rail. Rails whose NICs have the same speed
// share one.
struct References {
  std::vector<double> gbit_per_s;
  std::vector<double> both_gbit_per_s;
  std::vector<double> latency_us;
};
References references_of(const Results& results);

// The worst first: hosts without measurements, facts that differ, pairs that do not connect, lost
// packets, low bandwidth, high latency.
std::vector<Finding> judge(const Results& results, const Limits& limits);

// The first fault as the verdict, with the number of others.
std::string sentence(const std::vector<Finding>& findings);

}  // namespace ztcp::perf::probe
