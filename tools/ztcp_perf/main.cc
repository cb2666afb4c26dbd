// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <cstdio>
#include <cstring>
#include <exception>
#include <sys/prctl.h>

#include "tools/common/standard_streams.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/job/check_job.h"
#include "tools/ztcp_perf/launcher.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/probe/probe.h"
#include "tools/ztcp_perf/rank.h"

int main(int argc, char** argv) {
  using namespace ztcp::perf;
  ztcp::tools::keep_standard_streams();
  // The launcher runs ranks as /proc/self/exe, and ps, top and ztcp_stat would show "exe".
  prctl(PR_SET_NAME, "ztcp_perf");
  if (argc > 1 && std::strcmp(argv[1], "probe") == 0) return probe::run_probe(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "check-job") == 0) return job::run_check_job(argc, argv);
  try {
    const Options options = parse_options(argc, argv);
    if (options.rank) {
      const int status = run_rank(options);
      const bool all_is_said = ztcp::tools::has_kept_output("ztcp_perf");
      return status == kExitOk && !all_is_said ? kExitFailed : status;
    }
    return launch_local_ranks(options, argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ztcp_perf: %s\n", failure.what());
    return kExitUsage;
  }
}
