// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The command that starts an agent on another host. Pure, apart from reading the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/ztcp_perf/probe/options.h"

namespace ztcp::perf::probe {

// The agent's command line for the same plugin and settings, with the variables that a job's
// processes would have: ssh does not pass them on.
std::vector<std::string> agent_command(const ProbeOptions& options, const std::string& program);
// For a remote shell: each word as one word.
std::string shell_command(const std::vector<std::string>& words);
// Whether a variable ("ZTCP_CONFIG") is for the plugin.
bool is_for_plugin(std::string_view name);

}  // namespace ztcp::perf::probe
