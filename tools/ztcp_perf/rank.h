// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Runs one rank: load, connect, run every size, report (rank 0).
#pragma once

#include "tools/ztcp_perf/options.h"

namespace ztcp::perf {

// Returns an exit code; reports failures itself.
int run_rank(const Options& options);

}  // namespace ztcp::perf
