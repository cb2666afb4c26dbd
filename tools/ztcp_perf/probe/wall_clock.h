// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstdint>

namespace ztcp::perf::probe {

// Nanoseconds since 1970, to compare the clocks of hosts. Timeouts use the monotonic clock.
std::int64_t wall_clock_ns();

}  // namespace ztcp::perf::probe
