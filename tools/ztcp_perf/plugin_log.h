// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The lines that a plugin logs through NCCL's callback: written to stderr, and kept, so that a
// report can quote them.
#pragma once

#include <string>
#include <vector>

#include "plugin/abi/nccl_abi.h"
#include "tools/ztcp_perf/options.h"

namespace ztcp::perf {

struct LogLine {
  bool is_warning = false;
  std::string text;  // "NET/name : ..."
};

// Writes the plugin's lines to stderr as "[rank] WARN NET/name ...", and keeps the first ones at
// every level.
ncclDebugLogger_t make_logger(int rank, LogLevel level);

// The lines kept so far.
std::vector<LogLine> kept_log();

}  // namespace ztcp::perf
