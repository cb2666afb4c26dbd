// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Times the iterations of a size: each by itself on every rank, and all of them together.
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
  double elapsed_s = 0;  // Of this rank, without the pauses in which ranks agree.
  CpuSeconds cpu;        // Of this process meanwhile.
  // At rank 0, in microseconds: of each iteration the time of the rank that took longest; of a
  // ping rank 0's half round trips. Elsewhere empty.
  Samples us;
};

class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  // All must outlive the timer. `began` is when the run began.
  Timer(Exchange& exchange, Bootstrap& bootstrap, Budget& budget, const Options& options,
        Clock::time_point began)
      : exchange_(exchange),
        bootstrap_(bootstrap),
        budget_(budget),
        options_(options),
        began_(began) {}

  double spent_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  // Runs the iterations that are not timed. Seconds that the last of them took.
  double warm_up(const Plan& plan, std::size_t sizes_left);
  // `iteration_s` is what warm_up() said; `overhead_s` what the size needs besides.
  Timed run(const Plan& plan, double iteration_s, double overhead_s);

 private:
  // What ranks agree on: iterations to time in one go, after one that is not if `settles`.
  struct Part {
    std::int32_t iters = 0;
    std::int32_t settles = 0;
  };

  Part next_part(int done, double iteration_s, double overhead_s) const;
  // Returns the seconds of an iteration.
  double run_part(const Plan& plan, const Part& part, Timed& timed);
  // Of every rank's times the longest of each iteration, at rank 0.
  void collect(const std::vector<float>& mine, Timed& timed);

  Exchange& exchange_;
  Bootstrap& bootstrap_;
  Budget& budget_;
  const Options& options_;
  Clock::time_point began_;
};

}  // namespace ztcp::perf
