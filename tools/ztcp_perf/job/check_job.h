// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_perf check-job`: what a job's NCCL will use on each host, and whether it is faster.
#pragma once

namespace ztcp::perf::job {

// `argv[1]` is the command. Returns an exit code.
int run_check_job(int argc, char** argv);

}  // namespace ztcp::perf::job
