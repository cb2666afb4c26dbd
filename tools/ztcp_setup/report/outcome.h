// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The final output of a run that changes the machine, as text and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {

enum class RunKind : std::uint8_t { kSetUp, kAdd, kBoot, kUndo };

// The result of --undo --dry-run.
struct UndoPreview {
  struct Step {
    std::string why;   // The resource's description.
    std::string then;  // Its state after undo.
  };
  std::vector<Step> steps;  // In the order of undo.
  config::Problems faults;  // Undo would refuse to run because of these.
  config::Problems notes;
};
ExitCode exit_code(const UndoPreview& preview);
std::string to_text(const UndoPreview& preview);
std::string to_json(const UndoPreview& preview);

ExitCode exit_code(const Outcome& outcome);  // Notes do not make a run fail.
// "setup successfully", or the missing steps and how to continue.
std::string last_line(RunKind kind, const Outcome& outcome);
std::string to_text(RunKind kind, const Outcome& outcome);  // Notes, faults, the last line.
std::string to_json(RunKind kind, const Outcome& outcome);

}  // namespace ztcp::setup
