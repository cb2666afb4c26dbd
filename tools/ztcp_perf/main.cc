// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <cstdio>
#include <exception>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/launcher.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/rank.h"

int main(int argc, char** argv) {
  using namespace ztcp::perf;
  try {
    const Options options = parse_options(argc, argv);
    if (options.rank) return run_rank(options);
    return launch_local_ranks(options, argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ztcp_perf: %s\n", failure.what());
    return kExitUsage;
  }
}
