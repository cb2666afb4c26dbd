// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/preview_undo.h"

#include <span>

#include "tools/ztcp_setup/run/revert.h"

namespace ztcp::setup {
namespace {

void add_resource(Host& host, const Entry& entry, UndoPreview& preview) {
  if (!entry.before) return;
  preview.steps.push_back({entry.resource.why, restored(entry.resource, *entry.before)});
  if (!entry.done) return;
  if (const auto kept = kept_as(host, entry.resource, *entry.before))
    preview.notes.push_back(
        {entry.resource.why, "was edited since set-up; the edited file will be " + *kept, ""});
}

}  // namespace

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
