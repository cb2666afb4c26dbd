// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command line.
#pragma once

#include <tl/expected.hpp>

#include "tools/ztcp_setup/run/commands.h"

namespace ztcp::setup {

// For --help, --version and mistakes: the exit status; all output has been printed.
tl::expected<Options, int> parse_options(int argc, char** argv);

}  // namespace ztcp::setup
