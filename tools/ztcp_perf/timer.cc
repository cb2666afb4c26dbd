// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/timer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <sys/resource.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

// Maximum between two agreements. Bounds the ranks' memory, and the frames with times for rank 0.
constexpr int kMostIterations = 1 << 14;

// Ranks leave an agreement at slightly different times. For iterations shorter than this an untimed
// one comes first, so that no sample includes that difference.
constexpr double kSettlesBelow_s = 0.01;

CpuSeconds cpu_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

double seconds(Timer::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A rank without a part in a ping waits for the others, and is told the end there.
bool takes_part(const Plan& plan) {
  return plan.is_collective || !plan.sends.empty() || !plan.receives.empty();
}

}  // namespace

double Timer::warm_up(const Plan& plan, std::size_t sizes_left) {
  budget_.begin_size(spent_s(), sizes_left);
  auto last = Clock::now();
  double iteration_s = 0;
  int done = 0;
  do {
    exchange_.run(plan);
    const auto now = Clock::now();
    iteration_s = seconds(now - last);
    last = now;
    ++done;
  } while (done < options_.warmup && (options_.time_budget_s <= 0 ||
                                      bootstrap_.from_rank_0(budget_.affords_warmup(spent_s()))));
  return iteration_s;
}

Timed Timer::run(const Plan& plan, double iteration_s, double overhead_s) {
  Timed timed;
  for (;;) {
    const Part part = bootstrap_.from_rank_0(next_part(timed.iters, iteration_s, overhead_s));
    if (part.iters <= 0) return timed;
    iteration_s = run_part(plan, part, timed);
  }
}

Timer::Part Timer::next_part(int done, double iteration_s, double overhead_s) const {
  const int iters =
      budget_.next_iterations(options_.iters, done, iteration_s, overhead_s, spent_s());
  return {std::min(iters, kMostIterations), iteration_s < kSettlesBelow_s ? 1 : 0};
}

double Timer::run_part(const Plan& plan, const Part& part, Timed& timed) {
  const int iters = takes_part(plan) ? part.iters : 0;
  const float trips = options_.op == Op::kPing ? 2 : 1;
  if (part.settles != 0 && iters > 0) exchange_.run(plan);
  std::vector<float> us;
  us.reserve(static_cast<std::size_t>(iters));
  const CpuSeconds cpu = cpu_now();
  const auto begin = Clock::now();
  auto last = begin;
  for (int i = 0; i < iters; ++i) {
    exchange_.run(plan);
    const auto now = Clock::now();
    us.push_back(static_cast<float>(seconds(now - last) * 1e6) / trips);
    last = now;
  }
  const CpuSeconds cpu_after = cpu_now();
  timed.cpu.user += cpu_after.user - cpu.user;
  timed.cpu.system += cpu_after.system - cpu.system;
  timed.elapsed_s += seconds(last - begin);
  timed.iters += part.iters;
  collect(us, timed);
  return seconds(last - begin) / part.iters;
}

void Timer::collect(const std::vector<float>& mine, Timed& timed) {
  if (options_.op == Op::kPing) {
    if (bootstrap_.rank() == 0) timed.us.add(mine);
    return;
  }
  const std::vector<Bytes> all = bootstrap_.gather(std::as_bytes(std::span(mine)));
  if (bootstrap_.rank() != 0) return;
  std::vector<float> slowest(mine.size());
  std::vector<float> theirs(mine.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != mine.size() * sizeof(float))
      fail("rank {} sent a malformed frame", rank);
    std::memcpy(theirs.data(), all[rank].data(), all[rank].size());
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], theirs[i]);
  }
  timed.us.add(slowest);
}

}  // namespace ztcp::perf
