// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One function per command; each prints its result and returns the exit status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/problem.h"
#include "core/result.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/plan/plan.h"
#include "tools/ztcp_setup/plan/request.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {

enum class Command : std::uint8_t {
  kSetUp,
  kAdd,
  kBoot,
  kUndo,
  kUndoDryRun,
  kDryRun,
  kCheck,
  kLocal
};

// The command line, as tools/ztcp_setup/options.h reads it.
struct Options {
  Command command = Command::kSetUp;
  PlanRequest request;  // Its mode is the command's, also in a dry run.
  LocalRequest local;
  bool json = false;
};

int write_local_fabric(const Options& options);
int dry_run(const Options& options);
int check(const Options& options);
int undo_dry_run(const Options& options);
// These change the machine.
int set_up(const Options& options);
int add(const Options& options);
int boot(const Options& options);
int undo(const Options& options);

// The config's path as the journal and root use it, independent of the current folder.
std::string config_path_of(const PlanRequest& request);
// The plan for the machine's present state and config.
Result<Plan, config::Problem> plan_here(Host& host, const PlanRequest& request);
// The same with the changes that a run would make. Changes nothing.
struct DryRun {
  Plan plan;
  std::vector<Preview> changes;
};
Result<DryRun, config::Problem> dry_run_here(Host& host, const PlanRequest& request);
// Checks the present config against the machine, for a job with these variables ("NAME=value", then
// nullptr).
CheckReport check_here(Host& host, const std::string& config_path, const char* const* variables);

}  // namespace ztcp::setup
