// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/budget.h"

#include <algorithm>
#include <cmath>

namespace ztcp::perf {

bool Budget::admits(std::uint64_t size_bytes, double spent_s, int check_iters) const {
  if (total_s_ <= 0 || last_size_bytes_ == 0) return true;
  const double growth = static_cast<double>(size_bytes) / static_cast<double>(last_size_bytes_);
  const double least = last_iteration_s_ * growth * (2 + check_iters) + verify_estimate(size_bytes);
  return spent_s + least <= total_s_;
}

void Budget::begin_size(double spent_s, std::size_t sizes_left) {
  size_begin_s_ = spent_s;
  size_end_s_ =
      spent_s + (total_s_ - spent_s) / static_cast<double>(std::max<std::size_t>(sizes_left, 1));
}

bool Budget::affords_warmup(double spent_s) const {
  return total_s_ <= 0 || spent_s < size_begin_s_ + (size_end_s_ - size_begin_s_) / 4;
}

int Budget::next_iterations(int wanted, int done, double iteration_s, double overhead_s,
                            double spent_s) const {
  const double left = wanted - done;
  if (total_s_ <= 0) return static_cast<int>(left);
  const double fits = (size_end_s_ - spent_s - overhead_s) / std::max(iteration_s, 1e-9);
  const double least = done == 0 ? 1 : 0;
  if (fits < 1) return static_cast<int>(least);
  return static_cast<int>(std::min(std::ceil(fits / 2), left));
}

void Budget::learn(std::uint64_t size_bytes, double iteration_s, double verify_s) {
  last_size_bytes_ = size_bytes;
  last_iteration_s_ = iteration_s;
  verify_s_per_byte_ = verify_s / static_cast<double>(size_bytes);
}

}  // namespace ztcp::perf
