// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/preview.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <unistd.h>

#include "tools/ztcp_setup/run/revert.h"

namespace ztcp::setup {
namespace {

void note(Plan& plan, config::Severity severity, config::Problem problem) {
  plan.notes.push_back({"set-up", severity, std::move(problem)});
}

// In reverse order, as they are reverted.
std::vector<Preview> preview_reverts(const Journal& journal, const Resources& resources,
                                     Scope scope) {
  std::vector<Preview> reverts;
  for (const Entry& entry : journal.entries())
    if (entry.before && !is_notice(entry.resource) && is_stale(entry, resources, scope))
      reverts.push_back({"reverted: " + entry.resource.why, "set up", "as before set-up",
                         "(no command: its state is in the journal)"});
  std::reverse(reverts.begin(), reverts.end());
  return reverts;
}

// Absent: invisible to this user, or unreadable, which is noted.
std::optional<Journal> open_journal(Host& host, Plan& plan) {
  // Only root can enter its folder.
  const bool is_hidden = host.facts(Journal::kFolder).kind != FileKind::kAbsent &&
                         !host.may_access(Journal::kFolder, X_OK);
  if (is_hidden) return std::nullopt;
  auto journal = Journal::open(host);
  if (journal) return std::move(*journal);
  note(plan, config::Severity::kFault, journal.error());
  return std::nullopt;
}

// Notes edits that would be overwritten.
void note_kept(Host& host, const Journal& journal, Plan& plan) {
  for (const Resource& resource : plan.resources) {
    const Entry* known = journal.find(key_of(resource));
    if (known == nullptr || !known->done || !known->before || holds(host, resource)) continue;
    if (const auto kept = kept_as(host, known->resource, *known->before))
      note(plan, config::Severity::kWarning,
           {resource.why, "was edited since set-up; the edited file will be " + *kept, ""});
  }
}

void add_resource(Host& host, const Entry& entry, UndoPreview& preview) {
  if (!entry.before) return;
  preview.steps.push_back({entry.resource.why, restored(entry.resource, *entry.before)});
  if (!entry.done) return;
  if (const auto kept = kept_as(host, entry.resource, *entry.before))
    preview.notes.push_back(
        {entry.resource.why, "was edited since set-up; the edited file will be " + *kept, ""});
}

}  // namespace

std::vector<Preview> preview_changes(Host& host, const Journal& journal,
                                     const Resources& resources) {
  std::vector<Preview> changes;
  // Notices in a row announce the same resources before them.
  bool changed = false;
  bool behind_notice = false;
  for (const Resource& resource : resources) {
    const bool notice = is_notice(resource);
    if (!notice && behind_notice) changed = false;
    behind_notice = notice;
    const Entry* known = journal.find(key_of(resource));
    if (notice ? !changed && (known == nullptr || !is_due(*known)) : holds(host, resource))
      continue;
    if (!notice) changed = true;
    changes.push_back(preview(host, resource));
  }
  return changes;
}

std::vector<Preview> preview_run(Host& host, Mode mode, Plan& plan) {
  if (!plan.fabric) return {};
  // A plan with faults is not applied; its changes are shown all the same.
  if (plan.has_faults()) return preview_changes(host, {}, plan.resources);
  const Scope scope = mode == Mode::kAdd || plan.awaits_reboot ? Scope::kMore : Scope::kWhole;
  const std::optional<Journal> seen = open_journal(host, plan);
  const Journal journal = seen.value_or(Journal{});
  if (const auto problem = why_not_added_to(journal); mode == Mode::kAdd && seen && problem)
    note(plan, config::Severity::kFault, *problem);
  for (config::Problem& problem : faults_before(host, journal, plan.resources, scope))
    note(plan, config::Severity::kFault, std::move(problem));
  if (!journal.entries().empty() && !journal.complete && mode != Mode::kAdd)
    note(plan, config::Severity::kWarning,
         {Journal::kPath,
          "the last run was interrupted: its changes are reverted first, and the machine read "
          "anew",
          "sudo ztcp_setup --undo only reverts"});
  note_kept(host, journal, plan);
  std::vector<Preview> changes = preview_reverts(journal, plan.resources, scope);
  std::vector<Preview> rest = preview_changes(host, journal, plan.resources);
  std::move(rest.begin(), rest.end(), std::back_inserter(changes));
  return changes;
}

void note_reverted(Plan& plan, const Outcome& reverted) {
  if (reverted.changed())
    note(plan, config::Severity::kWarning,
         {Journal::kPath,
          "the last run was interrupted: its changes were reverted, except for its hugepages",
          "sudo ztcp_setup --undo frees those, too"});
  for (const config::Problem& one : reverted.notes) note(plan, config::Severity::kWarning, one);
}

// In the order of revert.cc: last first, and programs after the resources they announce are
// reverted.
UndoPreview preview_undo(Host& host, const Journal& journal) {
  UndoPreview preview;
  preview.faults = held_nics(host, journal, [](const Entry&) { return true; });
  std::span<const Entry> entries(journal.entries());
  while (!entries.empty()) {
    auto notices = entries.size();
    while (notices > 0 && is_notice(entries[notices - 1].resource)) --notices;
    auto begin = notices;
    while (begin > 0 && !is_notice(entries[begin - 1].resource)) --begin;
    const std::size_t before = preview.steps.size();
    for (auto at = notices; at > begin; --at) add_resource(host, entries[at - 1], preview);
    const bool changed = preview.steps.size() > before;
    for (const Entry& notice : entries.subspan(notices))
      if (changed || is_due(notice)) preview.steps.push_back({notice.resource.why, "it is run"});
    entries = entries.first(begin);
  }
  return preview;
}

}  // namespace ztcp::setup
