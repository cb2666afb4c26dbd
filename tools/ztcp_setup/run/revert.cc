// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/revert.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace ztcp::setup {
namespace {

void append(config::Problems& to, config::Problems from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

class Reverter {
 public:
  using Entries = std::span<const Entry>;

  Reverter(Host& host, Journal& journal, const Chosen& chosen, const Progress& progress,
           Outcome& outcome)
      : host_(host), journal_(journal), chosen_(chosen), progress_(progress), outcome_(outcome) {}

  // Resources and the notices behind them belong together: the notices run after the resources are
  // reverted.
  void run() {
    const std::vector<Entry> copy = journal_.entries();
    Entries entries(copy);
    while (!entries.empty() && !outcome_.stopped) {
      auto notices = entries.size();
      while (notices > 0 && is_notice(entries[notices - 1].resource)) --notices;
      auto begin = notices;
      while (begin > 0 && !is_notice(entries[begin - 1].resource)) --begin;
      const Entries resources = entries.subspan(begin, notices - begin);
      const Entries behind = entries.subspan(notices);
      revert_resources(resources, behind);
      if (!outcome_.stopped) run_notices(resources, behind);
      entries = entries.first(begin);
    }
    save();
  }

 private:
  void revert_resources(Entries resources, Entries notices) {
    for (auto entry = resources.rbegin(); entry != resources.rend(); ++entry) {
      if (!chosen_(*entry)) continue;
      if (progress_.stop()) {
        outcome_.stopped = true;
        return;
      }
      if (entry->before) {
        for (const Entry& notice : notices)
          journal_.put({notice.resource, resource::Notice::Before{true}, notice.done}, "");
        // From here on it counts as interrupted, so that a half restored NIC is not taken for a new
        // one. For a file `done` stays: keep_edited() uses it.
        journal_.put({entry->resource, entry->before, keeps_edits(entry->resource) && entry->done},
                     "");
        journal_.complete = false;
        if (!save()) return;
        progress_.begin(entry->resource.why);
        if (!revert_one(*entry)) continue;
      }
      journal_.erase(key_of(entry->resource));
    }
  }

  bool revert_one(const Entry& entry) {
    Reverted reverted;
    if (entry.done) reverted = keep_edited(host_, entry.resource, *entry.before);
    if (reverted.faults.empty()) {
      Reverted rest = revert(host_, entry.resource, *entry.before);
      reverted.faults = std::move(rest.faults);
      append(reverted.notes, std::move(rest.notes));
    }
    append(outcome_.notes, std::move(reverted.notes));
    return step(entry, std::move(reverted.faults));
  }

  void run_notices(Entries resources, Entries notices) {
    const bool none_left = std::none_of(
        resources.begin(), resources.end(),
        [&](const Entry& entry) { return journal_.find(key_of(entry.resource)) != nullptr; });
    if (!notices.empty() && !save()) return;
    for (const Entry& notice : notices) {
      Entry* entry = journal_.find(key_of(notice.resource));
      if (is_due(*entry) &&
          (none_left || std::any_of(resources.begin(), resources.end(), chosen_))) {
        progress_.begin(notice.resource.why);
        if (!step(notice, revert(host_, notice.resource, *entry->before).faults)) continue;
        entry->before = resource::Notice::Before{false};
      }
      if (none_left && chosen_(notice)) journal_.erase(key_of(notice.resource));
    }
  }

  // Returns whether it succeeded.
  bool step(const Entry& entry, config::Problems faults) {
    const bool good = faults.empty();
    append(outcome_.faults, std::move(faults));
    outcome_.steps.push_back(
        {entry.resource.why, good ? StepResult::kReverted : StepResult::kFailed});
    progress_.end(outcome_.steps.back());
    return good;
  }

  bool save() {
    Done saved = journal_.save(host_);
    if (saved) return true;
    outcome_.faults.push_back(std::move(saved.error()));
    outcome_.stopped = true;
    return false;
  }

  Host& host_;
  Journal& journal_;
  const Chosen& chosen_;
  const Progress& progress_;
  Outcome& outcome_;
};

}  // namespace

config::Problems held_nics(Host& host, const Journal& journal, const Chosen& chosen) {
  config::Problems problems;
  for (const Entry& entry : journal.entries()) {
    if (!entry.before || !chosen(entry)) continue;
    if (auto problem = in_use(host, entry.resource)) problems.push_back(std::move(*problem));
  }
  return problems;
}

Outcome revert_chosen(Host& host, Journal& journal, const Chosen& chosen,
                      const Progress& progress) {
  Outcome outcome;
  outcome.faults = held_nics(host, journal, chosen);
  if (outcome.faults.empty()) Reverter(host, journal, chosen, progress, outcome).run();
  return outcome;
}

Outcome revert_all(Host& host, Journal& journal, const Progress& progress) {
  return revert_chosen(
      host, journal, [](const Entry&) { return true; }, progress);
}

Outcome revert_half_done(Host& host, Journal& journal, const Progress& progress) {
  return revert_chosen(
      host, journal, [](const Entry& entry) { return !may_fall_short(entry.resource); }, progress);
}

}  // namespace ztcp::setup
