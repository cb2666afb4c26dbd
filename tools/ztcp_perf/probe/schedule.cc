// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/schedule.h"

#include <algorithm>

namespace ztcp::perf::probe {

std::vector<std::vector<Pair>> rounds_of(std::size_t hosts) {
  std::vector<std::vector<Pair>> rounds;
  if (hosts < 2) return rounds;
  // All seats but the last stand on a circle that turns by one seat a round. With an odd number of
  // hosts the last seat is empty.
  const std::size_t circle = hosts - 1 + hosts % 2;
  for (std::size_t round = 0; round < circle; ++round) {
    std::vector<Pair>& pairs = rounds.emplace_back();
    if (circle < hosts) pairs.push_back({round, circle});
    for (std::size_t step = 1; step <= circle / 2; ++step) {
      const std::size_t left = (round + step) % circle;
      const std::size_t right = (round + circle - step) % circle;
      pairs.push_back({std::min(left, right), std::max(left, right)});
    }
  }
  return rounds;
}

}  // namespace ztcp::perf::probe
