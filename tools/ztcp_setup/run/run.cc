// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/run.h"

#include <functional>
#include <unistd.h>

#include <fmt/format.h>

#include "config/file/load.h"
#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/report/report.h"
#include "tools/ztcp_setup/run/revert.h"
#include "tools/ztcp_setup/run/stop_signal.h"

namespace ztcp::setup {
namespace {

using std::chrono::milliseconds;

// udev starts a run when a NIC appears, which may still be running when the next is started for it.
constexpr std::chrono::minutes kRunOfUdev{1};

using Action = std::function<Result<Outcome, int>(Journal&, const Progress&)>;

int run(Host& host, RunKind kind, milliseconds timeout, const RunOptions& options,
        const Action& action) {
  if (::geteuid() != 0)
    return refuse({"root is needed", "this changes the machine; nothing was changed",
                   "sudo " + options.command},
                  options.json);
  // Undo uses only the journal; it judges each path of that in turn.
  if (kind != RunKind::kUndo)
    if (auto problem = why_not_trusted(host, options.config_path))
      return refuse(*problem, options.json);
  const auto lock = RunLock::take(timeout, options.lock_path);
  if (!lock) return refuse(lock.error(), options.json);
  auto journal = Journal::open(host);
  if (!journal) return refuse(journal.error(), options.json);
  stop_on_signals();
  const auto outcome = action(*journal, progress_of(options.json));
  if (!outcome) return outcome.error();
  say(options.json ? to_json(kind, *outcome) : to_text(kind, *outcome));
  return exit_code(*outcome);
}

Result<Outcome, int> plan_and_apply(Host& host, Journal& journal, const Planner& plan,
                                    const Progress& progress, const Outcome& reverted = {}) {
  Planned planned = ZTCP_TRY(plan(reverted));
  Outcome outcome = apply_all(host, journal, planned.resources, planned.scope, progress);
  outcome.success = std::move(planned.success);
  outcome.notes.insert(outcome.notes.begin(), planned.notes.begin(), planned.notes.end());
  outcome.steps.insert(outcome.steps.begin(), reverted.steps.begin(), reverted.steps.end());
  outcome.notes.insert(outcome.notes.begin(), reverted.notes.begin(), reverted.notes.end());
  return outcome;
}

}  // namespace

Progress progress_of(bool json) {
  Progress progress;
  progress.stop = stop_requested;
  if (json) return progress;
  progress.begin = [](const std::string& why) { say(fmt::format("  {} ... ", why)); };
  progress.end = [](const Step& step) {
    if (step.result != StepResult::kHeld)
      say(step.result == StepResult::kFailed ? "FAILED\n" : "done\n");
  };
  return progress;
}

int run_set_up(Host& host, const Planner& plan, const RunOptions& options) {
  return run(host, RunKind::kSetUp, milliseconds{0}, options,
             [&](Journal& journal, const Progress& progress) -> Result<Outcome, int> {
               if (journal.complete || journal.entries().empty())
                 return plan_and_apply(host, journal, plan, progress);
               // NICs in a half changed state cannot be planned with: revert first.
               if (!options.json)
                 say("The last run was interrupted; its changes are reverted first.\n");
               Outcome back = revert_half_done(host, journal, progress);
               if (!back.complete()) return back;
               return plan_and_apply(host, journal, plan, progress, back);
             });
}

int run_add(Host& host, const Planner& plan, const RunOptions& options) {
  return run(host, RunKind::kAdd, kRunOfUdev, options,
             [&](Journal& journal, const Progress& progress) -> Result<Outcome, int> {
               if (const auto problem = why_not_added_to(journal))
                 return tl::unexpected(refuse(*problem, options.json));
               return plan_and_apply(host, journal, plan, progress);
             });
}

int run_boot(Host& host, const RunOptions& options) {
  return run(host, RunKind::kBoot, kRunOfUdev, options,
             [&](Journal& journal, const Progress& progress) -> Result<Outcome, int> {
               Outcome outcome = apply_after_boot(host, journal, progress);
               if (journal.find("file " + options.config_path) == nullptr) return outcome;
               for (config::Problem& problem : config::load(host, options.config_path).problems)
                 outcome.faults.push_back(std::move(problem));
               return outcome;
             });
}

int run_undo(Host& host, const RunOptions& options) {
  return run(host, RunKind::kUndo, milliseconds{0}, options,
             [&](Journal& journal, const Progress& progress) -> Result<Outcome, int> {
               return revert_all(host, journal, progress);
             });
}

}  // namespace ztcp::setup
