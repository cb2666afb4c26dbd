// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The commands that change the machine: what they wish for. How it is carried out is in run.h.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "config/machine.h"
#include "tools/ztcp_setup/commands.h"
#include "tools/ztcp_setup/live_host.h"
#include "tools/ztcp_setup/report.h"
#include "tools/ztcp_setup/run.h"

namespace ztcp::setup {
namespace {

std::string command_line() {
  std::string words = config::read_text("/proc/self/cmdline").value_or("ztcp_setup");
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

RunOptions run_options(const Options& options) {
  std::error_code error;
  const auto path = std::filesystem::absolute(options.request.config_path, error);
  return {options.json, command_line(),
          error ? options.request.config_path : path.lexically_normal().string()};
}

Planner planner(const Options& options, const RunOptions& run, Scope scope) {
  return [&options, &run, scope]() -> tl::expected<Planned, int> {
    Request request = options.request;
    request.config_path = run.config_path;
    const auto plan = plan_here(request);
    if (!plan) return tl::unexpected<int>(refuse(plan.error(), options.json));
    if (!plan->fabric || plan->has_faults()) {
      fmt::print("{}", options.json ? to_json(*plan) : faults_text(*plan));
      return tl::unexpected<int>(std::max<int>(exit_code(*plan), kExitFaults));
    }
    if (!options.json) fmt::print("{}\n", decisions_text(*plan));
    Planned planned{plan->wishes, scope, {}, ""};
    for (const config::Check& note : plan->notes) planned.notes.push_back(note.problem);
    if (plan->awaits_reboot) {
      // The rest of the wishes comes with the next run: what is there stays.
      planned.scope = Scope::kMore;
      planned.success = "prepared for the next boot: reboot, then run `sudo ztcp_setup` again";
    }
    return planned;
  };
}

}  // namespace

int set_up(const Options& options) {
  LiveHost host;
  const RunOptions run = run_options(options);
  return run_set_up(host, planner(options, run, Scope::kWhole), run);
}

int add(const Options& options) {
  LiveHost host;
  const RunOptions run = run_options(options);
  return run_add(host, planner(options, run, Scope::kMore), run);
}

int boot(const Options& options) {
  LiveHost host;
  return run_boot(host, run_options(options));
}

int undo(const Options& options) {
  LiveHost host;
  return run_undo(host, run_options(options));
}

}  // namespace ztcp::setup
