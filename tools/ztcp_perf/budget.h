// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Shares a time budget among the sizes of a run. Told the time; only rank 0 asks it. Pure.
// All times are seconds since the run began.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ztcp::perf {

class Budget {
 public:
  // `total_s` 0: no limit.
  explicit Budget(double total_s) : total_s_(total_s) {}

  // Whether a size still fits: at least one warm-up, one timed and `check_iters` verified
  // iterations, estimated from the size before.
  bool admits(std::uint64_t size_bytes, double spent_s, int check_iters) const;

  // Begins a size: of what is left, it and the `sizes_left - 1` after it get equal shares.
  void begin_size(double spent_s, std::size_t sizes_left);
  // Whether one more warm-up iteration is worth its time. A quarter of the share is.
  bool affords_warmup(double spent_s) const;
  // Timed iterations to run next, where `done` of `wanted` were run and the latest took
  // `iteration_s` each; 0: no more. `overhead_s` is what the size needs afterwards. The first are
  // at least one. They are half of what would fit, so that a wrong estimate - a slow first
  // iteration, or a slow one later - is put right by the next answer.
  int next_iterations(int wanted, int done, double iteration_s, double overhead_s,
                      double spent_s) const;

  // Learns from a finished size; `verify_s` is what filling and comparing took.
  void learn(std::uint64_t size_bytes, double iteration_s, double verify_s);
  double verify_estimate(std::uint64_t size_bytes) const {
    return verify_s_per_byte_ * static_cast<double>(size_bytes);
  }

 private:
  double total_s_;
  double size_begin_s_ = 0;
  double size_end_s_ = 0;
  double last_iteration_s_ = 0;
  std::uint64_t last_size_bytes_ = 0;
  double verify_s_per_byte_ = 0;
};

}  // namespace ztcp::perf
