// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the tool says: as text for people, as JSON for scripts. The JSON forms are tested against
// stored files: change them with care.
#pragma once

#include <string>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

// How bad it is, for scripts.
enum ExitCode : int {
  kExitGood = 0,
  kExitWarnings = 1,
  kExitFaults = 2,
  kExitUnusable = 3,  // There is no config, or no plan.
  kExitUsage = 64,    // The command line makes no sense (EX_USAGE of sysexits.h).
};

struct CheckReport {
  std::string config_path;
  config::Problems load_problems;  // Why there is no fabric; empty when there is one.
  std::vector<config::Check> checks;
};

ExitCode exit_code(const Plan& plan);
ExitCode exit_code(const CheckReport& report);

std::string to_text(const config::Problem& problem);  // "ztcp_setup: ..." and the mend below it.
// Of a dry run.
std::string to_text(const Plan& plan, const std::vector<Preview>& changes);
// The same for a run that goes on, or can't: which NICs, pages and class; and the faults.
std::string decisions_text(const Plan& plan);
// `reverted`: what a run that was cut off had done, just before this plan was made.
std::string faults_text(const Plan& plan, bool reverted);
std::string to_text(const CheckReport& report);
std::string to_text(const config::Fabric& local, LocalTopology topology);

std::string to_json(const config::Problem& problem, ExitCode code = kExitUnusable);
std::string to_json(const Plan& plan, const std::vector<Preview>& changes,
                    const char* mode = "dry-run");
std::string to_json(const CheckReport& report);
std::string to_json(const config::Fabric& local, LocalTopology topology);

// On stdout. That nobody listens any more (a full disk, `| head`, a closed terminal) ends no change
// half way.
void say(const std::string& text);

// Says the one thing that kept the tool from starting at all.
ExitCode refuse(const config::Problem& problem, bool json, ExitCode code = kExitUnusable);

// The commands that come after --local.
std::vector<std::string> next_commands(const config::Fabric& local, LocalTopology topology);

}  // namespace ztcp::setup
