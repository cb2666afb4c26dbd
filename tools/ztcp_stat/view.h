// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The views of `ztcp_stat` without a subcommand: live, once, repeated, JSON.
#pragma once

#include "tools/ztcp_stat/command.h"

namespace ztcp::stat {

// Adds --once, --json, --watch and --after-crash; Command::run shows the view.
void add_view(CLI::App& app, Command& command);

}  // namespace ztcp::stat
