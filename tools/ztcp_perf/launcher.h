// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Starts all ranks on this machine as processes of this program and watches them: when one fails or
// is killed, or on Ctrl-C, all end within seconds.
#pragma once

#include "tools/ztcp_perf/options.h"

namespace ztcp::perf {

// Returns the exit code of the whole run.
int launch_local_ranks(const Options& options, int argc, char** argv);

}  // namespace ztcp::perf
