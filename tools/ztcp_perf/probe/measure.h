// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The measurements of one pair, as a leader that times and a follower that obeys. Everything is
// agreed over the measured connections themselves.
#pragma once

#include "tools/ztcp_perf/probe/messages.h"
#include "tools/ztcp_perf/probe/pair_link.h"

namespace ztcp::perf::probe {

// Latency, bandwidth to the follower and back, and both at once, in about `seconds` together.
Measured lead(PairLink& link, double seconds);
// Returns when the leader has finished. Only `resent` is set.
Measured follow(PairLink& link);

}  // namespace ztcp::perf::probe
