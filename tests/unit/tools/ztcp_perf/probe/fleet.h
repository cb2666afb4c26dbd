// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Results of a probe of equal hosts, for tests to spoil.
#pragma once

#include <cstddef>
#include <string>

#include "tools/ztcp_perf/probe/results.h"
#include "tools/ztcp_perf/probe/schedule.h"

namespace ztcp::perf::probe {

inline Results fleet(std::size_t hosts, std::size_t rails = 1) {
  Results results;
  results.rails = rails;
  for (std::size_t i = 0; i < hosts; ++i) {
    Host& host = results.hosts.emplace_back();
    host.name = "h" + std::to_string(i);
    host.has_facts = true;
    host.facts = {.version = "0.1.0",
                  .plugin = "aa",
                  .config = "bb",
                  .kernel = "6.1",
                  .machine = "boot" + std::to_string(i),
                  .cpus = 8,
                  .nics = {}};
    for (std::size_t rail = 0; rail < rails; ++rail)
      host.facts.nics.push_back({.name = "ztcp" + std::to_string(rail),
                                 .device = static_cast<int>(rail),
                                 .speed_mbps = 100000,
                                 .mtu_bytes = 9000});
  }
  const auto rounds = rounds_of(hosts);
  results.rounds = rounds.size();
  for (const auto& round : rounds)
    for (const Pair& pair : round)
      for (std::size_t rail = 0; rail < rails; ++rail)
        results.pairs.push_back({.a = pair.a,
                                 .b = pair.b,
                                 .rail = rail,
                                 .failure = {},
                                 .latency = {1000, 18, 20, 40},
                                 .forward = {95, 0.0},
                                 .backward = {96, 0.0},
                                 .both_gbit_per_s = 180});
  return results;
}

// Calls `spoil(direction, pair)` for each direction that `host` sends in, or receives in.
template <class Spoil>
void each_sent(Results& results, std::size_t host, Spoil spoil) {
  for (PairResult& pair : results.pairs) {
    if (pair.a == host) spoil(pair.forward, pair);
    if (pair.b == host) spoil(pair.backward, pair);
  }
}
template <class Spoil>
void each_received(Results& results, std::size_t host, Spoil spoil) {
  for (PairResult& pair : results.pairs) {
    if (pair.a == host) spoil(pair.backward, pair);
    if (pair.b == host) spoil(pair.forward, pair);
  }
}

}  // namespace ztcp::perf::probe
