// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Shares a time budget among the sizes of a run. Told the time; only rank 0 asks it. Pure.
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
  // Timed iterations for a size whose iteration takes `iteration_s`: between 1 and `wanted`, so
  // that this size takes its share of what is left. `overhead_s` is what it needs besides.
  int iterations(int wanted, double iteration_s, double overhead_s, double spent_s,
                 std::size_t sizes_left) const;
  // Learns from a finished size; `verify_s` is what filling and comparing took.
  void learn(std::uint64_t size_bytes, double iteration_s, double verify_s);
  double verify_estimate(std::uint64_t size_bytes) const {
    return verify_s_per_byte_ * static_cast<double>(size_bytes);
  }

 private:
  double total_s_;
  double last_iteration_s_ = 0;
  std::uint64_t last_size_bytes_ = 0;
  double verify_s_per_byte_ = 0;
};

}  // namespace ztcp::perf
