// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/apply.h"

#include <algorithm>

#include "tools/ztcp_setup/run/revert.h"

namespace ztcp::setup {
namespace {

enum class OnFault : std::uint8_t { kStop, kGoOn };

class Applier {
 public:
  Applier(Host& host, Journal& journal, const Resources& resources, Scope scope, OnFault on_fault,
          const Progress& progress, Outcome& outcome)
      : host_(host),
        journal_(journal),
        resources_(resources),
        scope_(scope),
        on_fault_(on_fault),
        progress_(progress),
        outcome_(outcome) {}

  void run() {
    // Adding to an incomplete set-up does not complete it.
    const bool whole = scope_ == Scope::kWhole || journal_.complete || journal_.entries().empty();
    bool through = true;
    for (index_ = 0; index_ < resources_.size(); ++index_) {
      if (progress_.stop()) {
        outcome_.stopped = true;
        through = false;
        break;
      }
      const Resource& resource = resources_[index_];
      if (!(is_notice(resource) ? apply_notice(resource) : apply_one(resource))) {
        through = false;
        break;
      }
      if (journal_.find(key_of(resource)) != nullptr) last_key_ = key_of(resource);
    }
    if (through && whole) journal_.complete = true;
    if (Done saved = journal_.save(host_); !saved) outcome_.faults.push_back(saved.error());
  }

 private:
  // Returns false to end the run.
  bool apply_one(Resource resource) {
    note_ids(host_, resource);
    const Entry* known = journal_.find(key_of(resource));
    if (holds(host_, resource)) {
      // An edit that this plan took over remains an edit: the journal keeps the text that set-up
      // itself wrote, so that undo saves the file, as it would have without this run.
      const bool edited = known != nullptr && known->done && known->before &&
                          kept_as(host_, known->resource, *known->before);
      Entry entry{edited ? known->resource : resource,
                  known != nullptr ? known->before : std::nullopt, true};
      if (entry.before) hold_more(resource, *entry.before);
      put(std::move(entry));
      return step(resource, StepResult::kHeld);
    }
    std::optional<Before> before = before_of(resource, known);
    if (!before || !keep_edits(known)) return step(resource, StepResult::kFailed);
    const Journal on_disk = journal_;
    put({resource, std::move(before), false});
    make_notices_due();
    record_pages();
    if (on_fault_ == OnFault::kStop) journal_.complete = false;
    if (Done saved = journal_.save(host_); !saved) {
      outcome_.faults.push_back(saved.error());
      // Nothing was applied: the journal keeps the entry of an earlier run.
      journal_ = on_disk;
      step(resource, StepResult::kFailed);
      return false;
    }
    progress_.begin(resource.why);
    Entry& entry = *journal_.find(key_of(resource));
    const Done done = apply(host_, resource, *entry.before);
    entry.done = done || may_fall_short(resource);
    if (done) return step(resource, StepResult::kChanged);
    outcome_.faults.push_back(done.error());
    if (!entry.done) give_up(entry);
    step(resource, StepResult::kFailed);
    return on_fault_ == OnFault::kGoOn || may_fall_short(resource);
  }

  // The state before set-up first ran. Recorded anew only for a NIC that the host has reconfigured
  // since; not for one with an interrupted change.
  std::optional<Before> before_of(const Resource& resource, const Entry* known) {
    const bool has_known = known != nullptr && known->before.has_value();
    const bool anew =
        may_be_replaced(resource) && has_known && known->done && on_fault_ == OnFault::kStop;
    if (has_known && !anew) return known->before;
    auto fresh = read_before(host_, resource);
    if (!fresh) {
      outcome_.faults.push_back(fresh.error());
      return std::nullopt;
    }
    if (has_known && !replaces(resource, *fresh)) return known->before;
    return std::move(*fresh);
  }

  // Saves an edited file before it is overwritten, while the journal still has the text that the
  // earlier run wrote: no interruption can lose it.
  bool keep_edits(const Entry* known) {
    if (known == nullptr || !known->done || !known->before) return true;
    Reverted kept = keep_edited(host_, known->resource, *known->before);
    for (config::Problem& note : kept.notes) outcome_.notes.push_back(std::move(note));
    for (config::Problem& fault : kept.faults) outcome_.faults.push_back(std::move(fault));
    return kept.faults.empty();
  }

  // A failed step is reverted at once: a NIC must not be left without any driver. After a boot
  // nothing else is reverted: the folder for locks stays for the next try.
  void give_up(const Entry& entry) {
    if (on_fault_ == OnFault::kGoOn && !is_never_half(entry.resource)) return;
    Reverted reverted = revert(host_, entry.resource, *entry.before);
    for (config::Problem& note : reverted.notes) outcome_.notes.push_back(std::move(note));
    if (reverted.faults.empty() && on_fault_ == OnFault::kStop) {
      journal_.erase(key_of(entry.resource));
      return;
    }
    for (config::Problem& fault : reverted.faults) outcome_.faults.push_back(std::move(fault));
  }

  bool apply_notice(const Resource& resource) {
    Entry* entry = journal_.find(key_of(resource));
    if (entry == nullptr || !is_due(*entry)) return step(resource, StepResult::kHeld);
    progress_.begin(resource.why);
    if (Done done = apply(host_, resource, *entry->before); !done) {
      outcome_.faults.push_back(std::move(done.error()));
      return step(resource, StepResult::kFailed);
    }
    entry->resource = resource;
    entry->done = true;
    return step(resource, StepResult::kChanged);
  }

  // Marks the notices after this resource and its neighbours.
  void make_notices_due() {
    std::size_t i = index_;
    while (i < resources_.size() && !is_notice(resources_[i])) ++i;
    std::string after = key_of(resources_[index_]);
    for (; i < resources_.size() && is_notice(resources_[i]); ++i) {
      journal_.put({resources_[i], resource::Notice::Before{true}, false}, after);
      after = key_of(resources_[i]);
    }
  }

  // The command line of the next boot is written before pages are reserved, and reserves pages,
  // too: if that boot comes early, the journal has the number before.
  void record_pages() {
    for (const Resource& resource : resources_) {
      if (!may_fall_short(resource) || journal_.find(key_of(resource)) != nullptr ||
          holds(host_, resource))
        continue;
      if (auto before = read_before(host_, resource))
        journal_.put({resource, std::move(*before), false}, "");
    }
  }

  void put(Entry entry) {
    // In the order of the resources, independent of earlier entries.
    if (scope_ == Scope::kWhole) journal_.erase(key_of(entry.resource));
    if (last_key_.empty() && scope_ == Scope::kWhole)
      journal_.put_first(std::move(entry));
    else
      journal_.put(std::move(entry), last_key_);
  }

  bool step(const Resource& resource, StepResult result) {
    outcome_.steps.push_back({resource.why, result});
    progress_.end(outcome_.steps.back());
    return result != StepResult::kFailed || on_fault_ == OnFault::kGoOn || is_notice(resource);
  }

  Host& host_;
  Journal& journal_;
  const Resources& resources_;
  const Scope scope_;
  const OnFault on_fault_;
  const Progress& progress_;
  Outcome& outcome_;
  std::size_t index_ = 0;
  std::string last_key_;  // Key of the previous resource in the journal.
};

}  // namespace

bool Outcome::changed() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.result != StepResult::kHeld; });
}

bool is_stale(const Entry& entry, const Resources& resources, Scope scope) {
  if (scope != Scope::kWhole || stays(entry.resource)) return false;
  return std::none_of(resources.begin(), resources.end(), [&](const Resource& resource) {
    return key_of(resource) == key_of(entry.resource);
  });
}

config::Problems faults_before(Host& host, const Journal& journal, const Resources& resources,
                               Scope scope) {
  config::Problems faults = faults_of(host, resources);
  const auto stale = [&](const Entry& entry) { return is_stale(entry, resources, scope); };
  for (config::Problem& problem : held_nics(host, journal, stale))
    faults.push_back(std::move(problem));
  return faults;
}

Outcome apply_all(Host& host, Journal& journal, const Resources& resources, Scope scope,
                  const Progress& progress) {
  Outcome outcome;
  outcome.faults = faults_before(host, journal, resources, scope);
  if (!outcome.faults.empty()) return outcome;

  const auto stale = [&](const Entry& entry) { return is_stale(entry, resources, scope); };
  if (std::any_of(journal.entries().begin(), journal.entries().end(), stale)) {
    outcome = revert_chosen(host, journal, stale, progress);
    if (!outcome.complete()) return outcome;
  }
  Applier(host, journal, resources, scope, OnFault::kStop, progress, outcome).run();
  return outcome;
}

Outcome apply_after_boot(Host& host, Journal& journal, const Progress& progress) {
  Outcome outcome;
  if (journal.entries().empty()) return outcome;
  if (!journal.complete) {
    outcome.faults.push_back({Journal::kPath,
                              "set-up or undo was interrupted; "
                              "nothing is set up at this boot",
                              "sudo ztcp_setup, or sudo ztcp_setup --undo"});
    return outcome;
  }
  Resources resources;
  for (const Entry& entry : journal.entries())
    if (lost_at_boot(entry.resource)) resources.push_back(entry.resource);
  Applier(host, journal, resources, Scope::kMore, OnFault::kGoOn, progress, outcome).run();
  return outcome;
}

}  // namespace ztcp::setup
