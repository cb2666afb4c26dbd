// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <map>

#include "tools/ztcp_perf/probe/verdict.h"

namespace ztcp::perf::probe {
namespace {

// Upper median of the values above 0: of two it is the better bandwidth.
double median_of(std::vector<double>& values) {
  std::erase_if(values, [](double value) { return value <= 0; });
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The speed that most hosts tell for their NIC of this rail.
int speed_of(const Results& results, std::size_t rail) {
  std::map<int, std::size_t> votes;
  for (const Host& host : results.hosts)
    if (rail < host.facts.nics.size()) ++votes[host.facts.nics[rail].speed_mbps];
  const auto most = std::ranges::max_element(votes, {}, [](const auto& one) { return one.second; });
  return most == votes.end() ? 0 : most->first;
}

// Best measurement of each NIC, by host * rails + rail; 0: none.
struct Best {
  explicit Best(std::size_t nics) : gbit_per_s(nics), both(nics), latency_us(nics) {}
  std::vector<double> gbit_per_s;
  std::vector<double> both;
  std::vector<double> latency_us;
};

Best best_of(const Results& results) {
  Best best(results.hosts.size() * results.rails);
  for (const PairResult& pair : results.pairs) {
    if (!pair.failure.empty()) continue;
    for (const std::size_t host : {pair.a, pair.b}) {
      const std::size_t nic = host * results.rails + pair.rail;
      best.gbit_per_s[nic] =
          std::max({best.gbit_per_s[nic], pair.forward.gbit_per_s, pair.backward.gbit_per_s});
      best.both[nic] = std::max(best.both[nic], pair.both_gbit_per_s);
      double& latency = best.latency_us[nic];
      latency = latency == 0 ? pair.latency.p50_us : std::min(latency, pair.latency.p50_us);
    }
  }
  return best;
}

}  // namespace

// Not the median of all measurements: with three hosts one bad host spoils four of the six. Its bad
// measurements count once here, since the other hosts have a good one with each other.
References references_of(const Results& results) {
  const Best best = best_of(results);
  std::map<int, std::vector<std::size_t>> rails_by_speed;
  for (std::size_t rail = 0; rail < results.rails; ++rail)
    rails_by_speed[speed_of(results, rail)].push_back(rail);
  References references;
  references.gbit_per_s.resize(results.rails);
  references.both_gbit_per_s.resize(results.rails);
  references.latency_us.resize(results.rails);
  for (const auto& [speed, rails] : rails_by_speed) {
    std::vector<double> gbit_per_s;
    std::vector<double> both;
    std::vector<double> latency_us;
    for (const std::size_t rail : rails)
      for (std::size_t host = 0; host < results.hosts.size(); ++host) {
        const std::size_t nic = host * results.rails + rail;
        gbit_per_s.push_back(best.gbit_per_s[nic]);
        both.push_back(best.both[nic]);
        latency_us.push_back(best.latency_us[nic]);
      }
    for (const std::size_t rail : rails) {
      references.gbit_per_s[rail] = median_of(gbit_per_s);
      references.both_gbit_per_s[rail] = median_of(both);
      references.latency_us[rail] = median_of(latency_us);
    }
  }
  return references;
}

}  // namespace ztcp::perf::probe
