// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A rank's number among those of its machine, and the device that follows from it.
#pragma once

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::perf {

// Returns this rank's number among the ranks of its machine, and sets the variables that a plugin
// reads at init, as a launcher would. Every rank must call it.
int settle_local_rank(const Options& options, Bootstrap& bootstrap);

int choose_device(Net& net, const Options& options, int local_rank);

}  // namespace ztcp::perf
