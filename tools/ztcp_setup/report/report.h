// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The tool's output: text for people, JSON for scripts. Tests compare the JSON with stored files:
// change it with care.
#pragma once

#include <string>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {

// Exit statuses, for scripts.
enum ExitCode : int {
  kExitGood = 0,
  kExitWarnings = 1,
  kExitFaults = 2,
  kExitUnusable = 3,  // No config, or no plan.
  kExitUsage = 64,    // Wrong command line (EX_USAGE of sysexits.h).
};

struct CheckReport {
  std::string config_path;
  config::Problems load_problems;  // Why there is no fabric; empty when there is one.
  std::vector<config::Check> checks;
  std::string version{};  // That of this program.
  std::string
      digest{};  // Hash of the settings that hosts share (shared_config.h); empty: no fabric.
};

ExitCode exit_code(const Plan& plan);
ExitCode exit_code(const CheckReport& report);

std::string to_text(const config::Problem& problem);  // "ztcp_setup: ..." and the remedy below it.
// Output of a dry run.
std::string to_text(const Plan& plan, const std::vector<Preview>& changes);
// The same for a real run, started or refused: NICs, pages and class; and the faults.
std::string decisions_text(const Plan& plan);
// `reverted`: changes of an interrupted run were reverted just before this plan was made.
std::string faults_text(const Plan& plan, bool reverted);
std::string to_text(const CheckReport& report);
std::string to_text(const config::Fabric& local, LocalTopology topology);

std::string to_json(const config::Problem& problem, ExitCode code = kExitUnusable);
std::string to_json(const Plan& plan, const std::vector<Preview>& changes,
                    const char* mode = "dry-run");
std::string to_json(const CheckReport& report);
std::string to_json(const config::Fabric& local, LocalTopology topology);

// Prints to stdout. Write errors (a full disk, `| head`, a closed terminal) do not interrupt a
// change.
void say(const std::string& text);

// Reports the problem that kept the tool from starting.
ExitCode refuse(const config::Problem& problem, bool json, ExitCode code = kExitUnusable);

// The commands to run after --local.
std::vector<std::string> next_commands(const config::Fabric& local, LocalTopology topology);

}  // namespace ztcp::setup
