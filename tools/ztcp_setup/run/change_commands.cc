// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The commands that change the machine: their plans. run.h applies them.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "core/shell_word.h"
#include "tools/ztcp_setup/live/live_host.h"
#include "tools/ztcp_setup/report/report.h"
#include "tools/ztcp_setup/run/commands.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

// The command as typed, for "sudo ...", which drops ZTCP_CONFIG.
std::string command_line(Host& host, const std::string& config_path) {
  std::string words = config::text_of(host, "/proc/self/cmdline");
  if (words.empty()) words = "ztcp_setup";
  std::string line;
  bool named = false;
  for (std::size_t begin = 0; begin < words.size();) {
    const auto end = std::min(words.find('\0', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    named = named || word.starts_with("--config");
    line += (line.empty() ? "" : " ") + shell_word(word);
    begin = end + 1;
  }
  const char* variable = std::getenv("ZTCP_CONFIG");
  if (!named && variable != nullptr && config_path == variable)
    line += " --config " + shell_word(config_path);
  return line;
}

RunOptions run_options(Host& host, const Options& options) {
  return {options.json, command_line(host, options.request.config_path),
          config_path_of(options.request)};
}

Planner planner(Host& host, const Options& options, Scope scope) {
  return [&host, &options, scope](const Outcome& reverted) -> Result<Planned, int> {
    auto plan = plan_here(host, options.request);
    if (!plan) return tl::unexpected<int>(refuse(plan.error(), options.json));
    if (!plan->fabric || plan->has_faults()) {
      note_reverted(*plan, reverted);
      // Only JSON shows the previews, and computing them may run slow programs.
      say(options.json ? to_json(*plan, preview_changes(host, {}, plan->resources),
                                 scope == Scope::kWhole ? "set-up" : "add")
                       : faults_text(*plan, reverted.changed()));
      return tl::unexpected<int>(std::max<int>(exit_code(*plan), kExitFaults));
    }
    if (!options.json) say(decisions_text(*plan) + "\n");
    Planned planned{plan->resources, scope, {}, ""};
    for (const config::Check& note : plan->notes) planned.notes.push_back(note.problem);
    if (plan->sockets)
      planned.success = fmt::format("setup successfully, over {}", title_of(plan->sockets->over));
    if (plan->verbs) planned.success = "setup successfully, over RDMA devices";
    if (plan->awaits_reboot) {
      // The next run applies the other resources: present ones stay.
      planned.scope = Scope::kMore;
      planned.success = "prepared for the next boot: reboot, then run `sudo ztcp_setup` again";
    }
    return planned;
  };
}

}  // namespace

int set_up(const Options& options) {
  LiveHost host(LiveHost::Purpose::kChange);
  const RunOptions run = run_options(host, options);
  return run_set_up(host, planner(host, options, Scope::kWhole), run);
}

int add(const Options& options) {
  LiveHost host(LiveHost::Purpose::kChange);
  const RunOptions run = run_options(host, options);
  return run_add(host, planner(host, options, Scope::kMore), run);
}

int boot(const Options& options) {
  LiveHost host(LiveHost::Purpose::kChange);
  return run_boot(host, run_options(host, options));
}

int undo(const Options& options) {
  LiveHost host(LiveHost::Purpose::kChange);
  return run_undo(host, run_options(host, options));
}

}  // namespace ztcp::setup
