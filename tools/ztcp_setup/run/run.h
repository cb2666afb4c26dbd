// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One run that changes this machine, from the check of permissions to its last line: root, the
// lock, the journal, signals, progress, the report. The caller provides the plan.
#pragma once

#include <functional>
#include <string>

#include "core/result.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/outcome.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/resources/resource.h"
#include "tools/ztcp_setup/run/apply.h"
#include "tools/ztcp_setup/run/run_lock.h"

namespace ztcp::setup {

struct RunOptions {
  bool json = false;
  std::string command;      // As typed, for "sudo ...".
  std::string config_path;  // Must belong to root if it exists; undo does not check it.
  std::string lock_path = RunLock::kPath;
};

struct Planned {
  Resources resources;
  Scope scope = Scope::kWhole;
  config::Problems notes;
  std::string success;  // Replaces "setup successfully".
};
// Plans while no other run changes the machine. `reverted`: changes of an interrupted run, reverted
// just before. On failure an exit status; the reason has been printed.
using Planner = std::function<Result<Planned, int>(const Outcome& reverted)>;

// Prints each change when it begins and ends: some take a minute. In JSON all is printed at the
// end.
Progress progress_of(bool json);

// Each prints its changes to stdout and returns the exit status.
int run_set_up(Host& host, const Planner& plan, const RunOptions& options);
int run_add(Host& host, const Planner& plan, const RunOptions& options);
int run_boot(Host& host, const RunOptions& options);
int run_undo(Host& host, const RunOptions& options);

}  // namespace ztcp::setup
