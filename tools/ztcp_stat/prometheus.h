// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_stat --prometheus DIR` and `--listen ADDRESS:PORT` on the command line.
#pragma once

#include "tools/ztcp_stat/command.h"

namespace ztcp::stat {

void add_prometheus(CLI::App& app, Command& command);

}  // namespace ztcp::stat
