// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/budget.h"

#include <algorithm>

namespace ztcp::perf {

bool Budget::admits(std::uint64_t size_bytes, double spent_s, int check_iters) const {
  if (total_s_ <= 0 || last_size_bytes_ == 0) return true;
  const double growth = static_cast<double>(size_bytes) / static_cast<double>(last_size_bytes_);
  const double least = last_iteration_s_ * growth * (2 + check_iters) + verify_estimate(size_bytes);
  return spent_s + least <= total_s_;
}

int Budget::iterations(int wanted, double iteration_s, double overhead_s, double spent_s,
                       std::size_t sizes_left) const {
  if (total_s_ <= 0) return wanted;
  const double share =
      (total_s_ - spent_s) / static_cast<double>(std::max<std::size_t>(sizes_left, 1));
  const double affordable = (share - overhead_s) / std::max(iteration_s, 1e-9);
  return static_cast<int>(std::clamp(affordable, 1.0, static_cast<double>(wanted)));
}

void Budget::learn(std::uint64_t size_bytes, double iteration_s, double verify_s) {
  last_size_bytes_ = size_bytes;
  last_iteration_s_ = iteration_s;
  verify_s_per_byte_ = verify_s / static_cast<double>(size_bytes);
}

}  // namespace ztcp::perf
