// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One host's part in a probe: obeys the coordinator's lines (messages.h).
#pragma once

#include "tools/ztcp_perf/probe/options.h"

namespace ztcp::perf::probe {

// Reads from `in`, answers to `out`. Returns the exit code that the coordinator gives with its last
// line, or kExitNotRun when the coordinator is gone.
int run_agent(const ProbeOptions& options, int in, int out);

}  // namespace ztcp::perf::probe
