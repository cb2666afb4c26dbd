// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/foresee.h"

#include <algorithm>

#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

void foresee(Host& host, Scope scope, Plan& plan) {
  if (!plan.fabric || plan.has_faults()) return;
  const auto note = [&](config::Severity severity, config::Problem problem) {
    plan.notes.push_back({"set-up", severity, std::move(problem)});
  };
  for (config::Problem& problem : faults_of(host, plan.wishes))
    note(config::Severity::kFault, std::move(problem));
  if (host.facts(Journal::kPath).kind == FileKind::kAbsent) return;
  const auto journal = Journal::open(host);
  if (!journal) return note(config::Severity::kFault, journal.error());
  if (!journal->complete && scope == Scope::kWhole)
    note(config::Severity::kWarning,
         {Journal::kPath,
          "the last run was cut off: what it did is taken back first, and the machine looked at "
          "anew",
          "sudo ztcp_setup --undo takes it back alone"});
  std::vector<Change> back;
  for (const Entry& entry : journal->entries())
    if (entry.before && !is_notice(entry.resource) && is_stale(entry, plan.wishes, scope))
      back.insert(back.begin(), {"given back: " + entry.resource.why, "set up", "as before set-up",
                                 "(no command: its state is in the journal)"});
  plan.changes.insert(plan.changes.begin(), back.begin(), back.end());
}

void note_taken_back(Plan& plan, const Outcome& taken_back) {
  if (taken_back.changed())
    plan.notes.push_back({"set-up",
                          config::Severity::kWarning,
                          {Journal::kPath,
                           "the last run was cut off: what it did was taken back, but for its "
                           "hugepages",
                           "sudo ztcp_setup --undo gives those back, too"}});
  for (const config::Problem& note : taken_back.notes)
    plan.notes.push_back({"set-up", config::Severity::kWarning, note});
}

}  // namespace ztcp::setup
