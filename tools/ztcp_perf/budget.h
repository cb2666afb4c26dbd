// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Divides a time budget among the sizes of a run. Takes the time as an argument; used by rank 0
// only. Pure. All times are seconds since the run began.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ztcp::perf {

class Budget {
 public:
  // `total_s` 0: no limit.
  explicit Budget(double total_s) : total_s_(total_s) {}

  // Whether a size still fits: at least one warm-up, one timed and `check_iters` verified
  // iterations, estimated from the previous size.
  bool admits(std::uint64_t size_bytes, double spent_s, int check_iters) const;

  // Begins a size: the rest is divided equally among it and the `sizes_left - 1` sizes after it.
  void begin_size(double spent_s, std::size_t sizes_left);
  // Whether one more warm-up iteration fits. Warm-up gets a quarter of the share.
  bool affords_warmup(double spent_s) const;
  // Number of timed iterations to run next, after `done` of `wanted`, of which the latest took
  // `iteration_s` each; 0: enough. `overhead_s` is needed for the size afterwards. The first answer
  // is at least 1. Each is half of the number that would fit, so that the next answer can correct a
  // wrong estimate (a slow first iteration, or a slow one later).
  int next_iterations(int wanted, int done, double iteration_s, double overhead_s,
                      double spent_s) const;

  // Records a finished size; `verify_s` is the time of filling and comparing.
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
