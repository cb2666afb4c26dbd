// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a run that changes the machine says at its end, for people and for scripts.
#pragma once

#include <cstdint>
#include <string>

#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {

enum class RunKind : std::uint8_t { kSetUp, kAdd, kBoot, kUndo };

ExitCode exit_code(const Outcome& outcome);  // What is only noteworthy is no failure of a run.
// "setup successfully", or what is missing and how to go on.
std::string last_line(RunKind kind, const Outcome& outcome);
std::string to_text(RunKind kind, const Outcome& outcome);  // Notes, faults, the last line.
std::string to_json(RunKind kind, const Outcome& outcome);

}  // namespace ztcp::setup
