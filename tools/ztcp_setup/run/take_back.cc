// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/take_back.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "tools/ztcp_setup/resources/hands.h"

namespace ztcp::setup {
namespace {

void append(config::Problems& to, config::Problems from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

class Taker {
 public:
  Taker(Host& host, Journal& journal, const Chosen& chosen, const Conduct& conduct,
        Outcome& outcome)
      : host_(host), journal_(journal), chosen_(chosen), conduct_(conduct), outcome_(outcome) {}

  // Wishes and the notices behind them belong together: the notices are given once the wishes are
  // taken back.
  void run() {
    const std::vector<Entry> entries = journal_.entries();
    auto end = entries.size();
    while (end > 0 && !outcome_.stopped) {
      auto notices = end;
      while (notices > 0 && is_notice(entries[notices - 1].wish)) --notices;
      auto begin = notices;
      while (begin > 0 && !is_notice(entries[begin - 1].wish)) --begin;
      const std::vector<Entry> wishes(entries.begin() + offset(begin),
                                      entries.begin() + offset(notices));
      const std::vector<Entry> after(entries.begin() + offset(notices),
                                     entries.begin() + offset(end));
      take_back_wishes(wishes, after);
      if (!outcome_.stopped) give_notices(wishes, after);
      end = begin;
    }
    save();
  }

 private:
  static std::ptrdiff_t offset(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

  void take_back_wishes(const std::vector<Entry>& wishes, const std::vector<Entry>& notices) {
    for (auto entry = wishes.rbegin(); entry != wishes.rend(); ++entry) {
      if (!chosen_(*entry)) continue;
      if (conduct_.stop()) {
        outcome_.stopped = true;
        return;
      }
      if (entry->before) {
        for (const Entry& notice : notices)
          journal_.put({notice.wish, before::Notice{true}, notice.done}, "");
        // From here on it counts as cut off, so that nobody takes a half restored NIC for a new
        // one. Of a file it is still of use to know that it was written: see keep_edited().
        const bool file = std::holds_alternative<wish::File>(entry->wish.what);
        journal_.put({entry->wish, entry->before, file && entry->done}, "");
        journal_.complete = false;
        if (!save()) return;
        conduct_.begin(entry->wish.why);
        if (!restore(*entry)) continue;
      }
      journal_.erase(key_of(entry->wish));
    }
  }

  bool restore(const Entry& entry) {
    Restored restored;
    if (const auto* file = std::get_if<wish::File>(&entry.wish.what); file != nullptr && entry.done)
      restored = keep_edited(host_, *file, std::get<before::File>(*entry.before));
    if (restored.faults.empty()) {
      Restored rest = restore_entry(host_, entry);
      restored.faults = std::move(rest.faults);
      append(restored.notes, std::move(rest.notes));
    }
    const bool good = restored.faults.empty();
    append(outcome_.faults, std::move(restored.faults));
    append(outcome_.notes, std::move(restored.notes));
    outcome_.steps.push_back({entry.wish.why, good ? StepResult::kTakenBack : StepResult::kFailed});
    conduct_.end(outcome_.steps.back());
    return good;
  }

  void give_notices(const std::vector<Entry>& wishes, const std::vector<Entry>& notices) {
    const bool none_left = std::none_of(wishes.begin(), wishes.end(), [&](const Entry& entry) {
      return journal_.find(key_of(entry.wish)) != nullptr;
    });
    if (!notices.empty() && !save()) return;
    for (const Entry& one : notices) {
      Entry* entry = journal_.find(key_of(one.wish));
      auto& notice = std::get<before::Notice>(*entry->before);
      if (notice.due && (none_left || std::any_of(wishes.begin(), wishes.end(), chosen_))) {
        conduct_.begin(one.wish.why);
        const Done given = give(host_, std::get<wish::Notice>(one.wish.what));
        if (!given) outcome_.faults.push_back(given.error());
        outcome_.steps.push_back(
            {one.wish.why, given ? StepResult::kTakenBack : StepResult::kFailed});
        conduct_.end(outcome_.steps.back());
        if (!given) continue;
        notice.due = false;
      }
      if (none_left && chosen_(one)) journal_.erase(key_of(one.wish));
    }
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
  const Conduct& conduct_;
  Outcome& outcome_;
};

}  // namespace

Restored restore_entry(Host& host, const Entry& entry) {
  if (!entry.before) return {};
  return std::visit(
      [&](const auto& what, const auto& was) -> Restored {
        if constexpr (requires { restore(host, what, was); }) return restore(host, what, was);
        assert(false);  // The journal pairs each wish with its own kind.
        return {};
      },
      entry.wish.what, *entry.before);
}

config::Problems held_nics(Host& host, const Journal& journal, const Chosen& chosen) {
  config::Problems problems;
  for (const Entry& entry : journal.entries()) {
    const auto* driver = std::get_if<wish::Driver>(&entry.wish.what);
    if (driver == nullptr || !entry.before || !chosen(entry)) continue;
    if (auto problem = held(host, driver->pci)) problems.push_back(std::move(*problem));
  }
  return problems;
}

Outcome take_back(Host& host, Journal& journal, const Chosen& chosen, const Conduct& conduct) {
  Outcome outcome;
  outcome.faults = held_nics(host, journal, chosen);
  if (outcome.faults.empty()) Taker(host, journal, chosen, conduct, outcome).run();
  return outcome;
}

Outcome take_back(Host& host, Journal& journal, const Conduct& conduct) {
  return take_back(
      host, journal, [](const Entry&) { return true; }, conduct);
}

Outcome take_back_half_done(Host& host, Journal& journal, const Conduct& conduct) {
  const auto not_pages = [](const Entry& entry) {
    const auto* value = std::get_if<wish::Value>(&entry.wish.what);
    return value == nullptr || !value->at_least;
  };
  return take_back(host, journal, not_pages, conduct);
}

}  // namespace ztcp::setup
