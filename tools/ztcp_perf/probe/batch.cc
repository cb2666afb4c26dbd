// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/batch.h"

namespace ztcp::perf::probe {

std::uint64_t next_batch(std::uint64_t amount, double took_s, double left_s) {
  if (left_s <= 0) return 0;
  const std::uint64_t most = amount * kLargestGrowth;
  const double fits =
      took_s > 0 ? static_cast<double>(amount) * left_s / took_s : static_cast<double>(most);
  if (fits >= static_cast<double>(most)) return most;
  const auto next = static_cast<std::uint64_t>(fits);
  // A last batch much smaller than the one before tells nothing more.
  return next * 2 < amount ? 0 : next;
}

}  // namespace ztcp::perf::probe
