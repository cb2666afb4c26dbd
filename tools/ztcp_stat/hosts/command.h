// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_stat hosts FILE...`: merges the reports of `ztcp_setup --check --json` of many hosts into
// one table of the differences.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace ztcp::stat::hosts {

inline constexpr int kExitEqual = 0;
inline constexpr int kExitDifferent = 1;
inline constexpr int kExitBadInput = 2;

// Adds the subcommand. When the command line asks for it, `run` is set to its work, which returns
// the exit status. `run` outlives `app`.
void add_hosts(CLI::App& app, std::function<int()>& run);

}  // namespace ztcp::stat::hosts
