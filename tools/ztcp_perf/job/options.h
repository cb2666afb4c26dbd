// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command line of `ztcp_perf check-job`.
#pragma once

#include "tools/ztcp_perf/job/measure.h"
#include "tools/ztcp_perf/options.h"

namespace ztcp::perf::job {

struct JobOptions {
  Options run;
  MeasureOptions limits;
};

// Ends the process for --help and for usage errors (with kExitUsage).
JobOptions parse_job_options(int argc, char** argv);

}  // namespace ztcp::perf::job
