// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command line in parts: each subcommand has a function that adds it to the application.
// main.cc lists these functions.
#pragma once

#include <functional>

#include "tools/ztcp_stat/look/selection.h"

namespace CLI {
class App;
}

namespace ztcp::stat {

inline constexpr int kExitHealthy = 0;
inline constexpr int kExitFault = 1;  // A fault is named, or the work failed.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNothing = 3;  // There is no page to look at.

struct Command {
  Selection selection;       // --folder, --config and --pid, which all subcommands share.
  std::function<int()> run;  // The chosen work: returns the exit status.
};

// Adds options or a subcommand. When the command line asks for them, their callback sets
// Command::run. `command` outlives the application.
using AddCommand = void (*)(CLI::App& app, Command& command);

}  // namespace ztcp::stat
