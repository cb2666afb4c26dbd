// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One look at all pages of this host: values without files behind them, so that views and rules are
// tested with looks made by hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tools/ztcp_stat/look/selection.h"
#include "transport/stats/snapshot.h"

namespace ztcp::stat {

struct Page {
  std::filesystem::path file;
  std::string error;         // Empty: `snapshot` is valid.
  stats::Snapshot snapshot;  // Texts are printable ASCII.
  char state = '?';  // As /proc/PID/stat has it: 'T' is stopped by a signal, 't' by a debugger.
};

struct Look {
  std::vector<Page> pages;  // Sorted by file.
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
};

// Reads the selected pages. A page that can't be read is listed with its error; pages of other
// users are left out for everybody but root.
Result<Look> look_at(const Selection& selection);

// The state letter and start time of a /proc/PID/stat text; '?' for anything else.
struct ProcessState {
  char letter = '?';
  std::uint64_t start_ticks = 0;
};
ProcessState parse_process_state(std::string_view text);

// Makes the texts of a page safe for a terminal: another process has written them.
void make_printable(stats::Snapshot& snapshot);

}  // namespace ztcp::stat
