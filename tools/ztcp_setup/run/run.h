// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One run that changes this machine, from the question whether it may to its last line: root, the
// lock, the journal, signals, progress, the report. What is wanted is the caller's.
#pragma once

#include <functional>
#include <string>

#include <tl/expected.hpp>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/outcome.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/resources/resource.h"
#include "tools/ztcp_setup/run/apply.h"
#include "tools/ztcp_setup/run/run_lock.h"

namespace ztcp::setup {

struct RunOptions {
  bool json = false;
  std::string command;      // As it was typed, for "sudo ...".
  std::string config_path;  // Has to be root's, if it is there; undo does not ask.
  std::string lock_path = RunLock::kPath;
};

struct Planned {
  Resources resources;
  Scope scope = Scope::kWhole;
  config::Problems notes;
  std::string success;  // Instead of "setup successfully".
};
// Looks at the machine as it is when nobody else changes it. `reverted`: what a run that was cut
// off had done and was reverted just before. Else: an exit status, and why has been said.
using Planner = std::function<tl::expected<Planned, int>(const Outcome& reverted)>;

// Tells each change when it begins and ends: some take a minute. In JSON all is told at the end.
Progress progress_of(bool json);

// Each prints what it does on stdout and returns the exit status.
int run_set_up(Host& host, const Planner& plan, const RunOptions& options);
int run_add(Host& host, const Planner& plan, const RunOptions& options);
int run_boot(Host& host, const RunOptions& options);
int run_undo(Host& host, const RunOptions& options);

}  // namespace ztcp::setup
