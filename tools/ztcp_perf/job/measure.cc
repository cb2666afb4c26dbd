// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tools/ztcp_perf/connections.h"
#include "tools/ztcp_perf/exchange.h"
#include "tools/ztcp_perf/plan.h"

namespace ztcp::perf::job {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10U;
constexpr std::uint64_t kTrialBytes = std::uint64_t{1} << 20U;
constexpr int kMostIterations = 4096;

// One network's ring. A rank outside of it waits for the others' times.
class Ring {
 public:
  Ring(Net& net, int device, const Options& options, const std::vector<int>& members,
       Bootstrap& bootstrap)
      : options_(options),
        members_(members),
        bootstrap_(bootstrap),
        position_(std::find(members.begin(), members.end(), *options.rank) - members.begin()),
        connections_(net, options, is_member() ? bytes_needed() : 0, members),
        exchange_(net, connections_, bootstrap, options) {
    connections_.open(device, bootstrap);
    bootstrap.barrier();
  }

  // The slowest rank's seconds for each of `iterations`.
  double seconds_each(std::uint64_t size_bytes, int iterations) {
    bootstrap_.barrier();
    double took_s = 0;
    if (is_member()) {
      const Plan plan = make_plan(Op::kAllReduce, static_cast<int>(position_), count(), size_bytes);
      const auto begin = Clock::now();
      for (int i = 0; i < iterations; ++i) exchange_.run(plan);
      took_s = std::chrono::duration<double>(Clock::now() - begin).count() / iterations;
    }
    return std::ranges::max(bootstrap_.all_gather_values(took_s));
  }

 private:
  bool is_member() const { return position_ < static_cast<std::ptrdiff_t>(members_.size()); }
  int count() const { return static_cast<int>(members_.size()); }
  std::size_t bytes_needed() const {
    return make_plan(Op::kAllReduce, 0, count(), options_.max_bytes).input_bytes;
  }

  const Options& options_;
  const std::vector<int>& members_;
  Bootstrap& bootstrap_;
  std::ptrdiff_t position_;
  Connections connections_;
  Exchange exchange_;
};

// The largest power of two times kLeastBytes, up to `most`, that fits `share_s` a few times.
std::uint64_t size_for(double trial_s, double share_s, std::uint64_t most) {
  constexpr int kTimes = 3;
  const double fits = share_s / kTimes / trial_s * static_cast<double>(kTrialBytes);
  std::uint64_t size = most;
  while (size > kLeastBytes && static_cast<double>(size) > fits) size /= 2;
  return size;
}

int iterations_for(double each_s, double share_s) {
  return std::clamp(static_cast<int>(std::lround(share_s / each_s)), 1, kMostIterations);
}

}  // namespace

Measured measure(Net& ours, int device, Net& plain, const Options& options,
                 const MeasureOptions& limits, const std::vector<int>& members,
                 Bootstrap& bootstrap) {
  Ring over_ours(ours, device, options, members, bootstrap);
  Ring over_plain(plain, 0, options, members, bootstrap);
  bootstrap.set_silence_timeout(std::chrono::duration<double>(options.stall_timeout_s));
  const std::uint64_t trial_bytes = std::min(kTrialBytes, options.max_bytes);
  const double share_s = limits.seconds / (2 * limits.turns);
  double trial_s = 0;
  for (Ring* ring : {&over_ours, &over_plain}) {
    ring->seconds_each(trial_bytes, 1);  // Opens further flows and grows windows.
    trial_s = std::max(trial_s, ring->seconds_each(trial_bytes, 2));
  }
  Measured out;
  out.size_bytes = size_for(trial_s, share_s, options.max_bytes);
  const double ours_s = over_ours.seconds_each(out.size_bytes, 1);
  const double plain_s = over_plain.seconds_each(out.size_bytes, 1);
  const double factor = bus_factor(Op::kAllReduce, static_cast<int>(members.size())) *
                        static_cast<double>(out.size_bytes) * 1e-9;
  const auto take = [&](Ring& ring, double each_s, std::vector<double>& rates) {
    rates.push_back(factor / ring.seconds_each(out.size_bytes, iterations_for(each_s, share_s)));
  };
  for (int turn = 0; turn < limits.turns; ++turn) {
    // Neither is always the first of a turn.
    if (turn % 2 == 0) take(over_ours, ours_s, out.ours);
    take(over_plain, plain_s, out.plain);
    if (turn % 2 != 0) take(over_ours, ours_s, out.ours);
  }
  return out;
}

}  // namespace ztcp::perf::job
