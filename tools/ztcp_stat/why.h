// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_stat why`: names the slowest peer, flow or host and the reason.
#pragma once

#include <string>

#include "tools/ztcp_stat/command.h"
#include "tools/ztcp_stat/why/finding.h"

namespace ztcp::stat {

void add_why(CLI::App& app, Command& command);

// The findings for people: a sentence and a command each, the worst first.
std::string text_of(const Findings& findings, std::size_t processes, double seconds,
                    bool has_colour);

}  // namespace ztcp::stat
