// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command line.
#pragma once

#include "core/result.h"
#include "tools/ztcp_setup/run/commands.h"

namespace ztcp::setup {

// For --help, --version and mistakes: the exit status; all output has been printed.
Result<Options, int> parse_options(int argc, char** argv);

}  // namespace ztcp::setup
