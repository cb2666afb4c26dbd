// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Times the iterations of a size: each separately on every rank, and all of them together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/budget.h"
#include "tools/ztcp_perf/exchange.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/plan.h"
#include "tools/ztcp_perf/report.h"
#include "tools/ztcp_perf/spread.h"

namespace ztcp::perf {

struct Timed {
  int iters = 0;
  double elapsed_s = 0;  // This rank's, without the pauses in which ranks agree.
  CpuSeconds cpu;        // This process's, in that time.
  // On rank 0, in microseconds: for each iteration the slowest rank's time; for a ping rank 0's
  // half round trips. Elsewhere empty.
  Samples us;
};

class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  // All must outlive the timer. `began` is the start of the run.
  Timer(Exchange& exchange, Bootstrap& bootstrap, Budget& budget, const Options& options,
        Clock::time_point began)
      : exchange_(exchange),
        bootstrap_(bootstrap),
        budget_(budget),
        options_(options),
        began_(began) {}

  double spent_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  // Runs the untimed iterations. Returns the seconds of the last one.
  double warm_up(const Plan& plan, std::size_t sizes_left);
  // `iteration_s` comes from warm_up(); `overhead_s` is the size's other time.
  Timed run(const Plan& plan, double iteration_s, double overhead_s);

 private:
  // Agreed by all ranks: iterations to time in one go, after an untimed one if `settles`.
  struct Part {
    std::int32_t iters = 0;
    std::int32_t settles = 0;
  };

  Part next_part(int done, double iteration_s, double overhead_s) const;
  // Returns the seconds per iteration.
  double run_part(const Plan& plan, const Part& part, Timed& timed);
  // Collects the slowest rank's time of each iteration, on rank 0.
  void collect(const std::vector<float>& mine, Timed& timed);

  Exchange& exchange_;
  Bootstrap& bootstrap_;
  Budget& budget_;
  const Options& options_;
  Clock::time_point began_;
};

}  // namespace ztcp::perf
