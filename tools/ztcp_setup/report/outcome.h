// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a run that changes the machine says at its end, for people and for scripts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {

enum class RunKind : std::uint8_t { kSetUp, kAdd, kBoot, kUndo };

// Of --undo --dry-run.
struct UndoPreview {
  struct Step {
    std::string why;   // The resource's own line.
    std::string then;  // What undo makes of it.
  };
  std::vector<Step> steps;  // In the order of undo.
  config::Problems faults;  // With which undo would change nothing.
  config::Problems notes;
};
ExitCode exit_code(const UndoPreview& preview);
std::string to_text(const UndoPreview& preview);
std::string to_json(const UndoPreview& preview);

ExitCode exit_code(const Outcome& outcome);  // What is only noteworthy is no failure of a run.
// "setup successfully", or what is missing and how to go on.
std::string last_line(RunKind kind, const Outcome& outcome);
std::string to_text(RunKind kind, const Outcome& outcome);  // Notes, faults, the last line.
std::string to_json(RunKind kind, const Outcome& outcome);

}  // namespace ztcp::setup
