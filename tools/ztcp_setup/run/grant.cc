// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/grant.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "tools/ztcp_setup/resources/hands.h"
#include "tools/ztcp_setup/run/take_back.h"

namespace ztcp::setup {
namespace {

enum class OnFault : std::uint8_t { kStop, kGoOn };

bool holds_wish(Host& host, const Wish& wish) {
  return std::visit(
      [&](const auto& what) {
        if constexpr (requires { holds(host, what); })
          return holds(host, what);
        else
          return false;  // A notice holds nothing.
      },
      wish.what);
}

Read<Before> record_before(Host& host, const Wish& wish) {
  return std::visit(
      [&](const auto& what) -> Read<Before> {
        if constexpr (requires { record(host, what); }) {
          auto before = record(host, what);
          if (!before) return tl::unexpected(std::move(before.error()));
          return Before(std::move(*before));
        } else {
          return Before(before::Notice{});
        }
      },
      wish.what);
}

Done carry_out_wish(Host& host, const Wish& wish, Before& before) {
  return std::visit(
      [&](const auto& what, auto& was) -> Done {
        if constexpr (requires { carry_out(host, what, was); }) return carry_out(host, what, was);
        assert(false);  // The journal pairs each wish with its own kind.
        return {};
      },
      wish.what, before);
}

bool may_fall_short(const Wish& wish) {
  const auto* value = std::get_if<wish::Value>(&wish.what);
  return value != nullptr && value->at_least;
}

// What of a value that fulfils the wish is ours: an earlier run may have been granted more.
std::string reached_of(const wish::Value& wish, const before::Value& before) {
  const auto number = [](const std::string& text) {
    std::uint64_t parsed = 0;
    std::from_chars(text.data(), text.data() + text.size(), parsed);
    return parsed;
  };
  return wish.at_least && number(before.reached) > number(wish.value) ? before.reached : wish.value;
}

// With the numbers of its names, as far as they are known now.
Wish with_ids(Host& host, Wish wish) {
  std::visit(
      [&](auto& what) {
        if constexpr (requires { what.ids.user = host.user_id(what.user); })
          if (const auto id = host.user_id(what.user)) what.ids.user = id;
        if constexpr (requires { what.ids.group = host.group_id(what.group); })
          if (const auto id = host.group_id(what.group)) what.ids.group = id;
      },
      wish.what);
  return wish;
}

class Granter {
 public:
  Granter(Host& host, Journal& journal, const Wishes& wishes, Scope scope, OnFault on_fault,
          const Conduct& conduct, Outcome& outcome)
      : host_(host),
        journal_(journal),
        wishes_(wishes),
        scope_(scope),
        on_fault_(on_fault),
        conduct_(conduct),
        outcome_(outcome) {}

  void run() {
    // What was cut off before is not made whole by adding to it.
    const bool whole = scope_ == Scope::kWhole || journal_.complete || journal_.entries().empty();
    bool through = true;
    for (index_ = 0; index_ < wishes_.size(); ++index_) {
      if (conduct_.stop()) {
        outcome_.stopped = true;
        through = false;
        break;
      }
      const Wish& wish = wishes_[index_];
      if (!(is_notice(wish) ? notice(wish) : grant(wish))) {
        through = false;
        break;
      }
      if (journal_.find(key_of(wish)) != nullptr) last_key_ = key_of(wish);
    }
    if (through && whole) journal_.complete = true;
    if (Done saved = journal_.save(host_); !saved) outcome_.faults.push_back(saved.error());
  }

 private:
  // False ends the run.
  bool grant(const Wish& wished) {
    const Wish wish = with_ids(host_, wished);
    const Entry* known = journal_.find(key_of(wish));
    if (holds_wish(host_, wish)) {
      Entry entry{wish, known != nullptr ? known->before : std::nullopt, true};
      // Pages that could not be had then are there now: they are ours as well.
      if (entry.before)
        if (auto* value = std::get_if<before::Value>(&*entry.before))
          value->reached = reached_of(std::get<wish::Value>(wish.what), *value);
      put(std::move(entry));
      return step(wish, StepResult::kHeld);
    }
    std::optional<Before> before = before_of(wish, known);
    if (!before) return step(wish, StepResult::kFailed);
    put({wish, std::move(before), false});
    make_notices_due();
    record_pages();
    if (on_fault_ == OnFault::kStop) journal_.complete = false;
    if (Done saved = journal_.save(host_); !saved) {
      outcome_.faults.push_back(saved.error());
      journal_.erase(key_of(wish));
      step(wish, StepResult::kFailed);
      return false;
    }
    conduct_.begin(wish.why);
    Entry& entry = *journal_.find(key_of(wish));
    const Done done = carry_out_wish(host_, wish, *entry.before);
    entry.done = done || may_fall_short(wish);
    if (done) return step(wish, StepResult::kChanged);
    outcome_.faults.push_back(done.error());
    if (!entry.done) give_up(entry);
    step(wish, StepResult::kFailed);
    return on_fault_ == OnFault::kGoOn || may_fall_short(wish);
  }

  // What was there when set-up first came. Only a NIC that got a new life in the network since is
  // recorded anew; not one that was cut off half way.
  std::optional<Before> before_of(const Wish& wish, const Entry* known) {
    const bool nic = std::holds_alternative<wish::Driver>(wish.what);
    const bool keep =
        known != nullptr && known->before && !(nic && known->done && on_fault_ == OnFault::kStop);
    if (keep) return known->before;
    auto fresh = record_before(host_, wish);
    if (!fresh) {
      outcome_.faults.push_back(fresh.error());
      return std::nullopt;
    }
    if (nic && known != nullptr && known->before &&
        !has_addresses(std::get<before::Driver>(*fresh)))
      return known->before;
    return std::move(*fresh);
  }

  // A wish that failed is put back at once: a NIC must not be left without any driver. Nothing else
  // is after a boot: the folder for locks stays for the next try.
  void give_up(const Entry& entry) {
    if (on_fault_ == OnFault::kGoOn && !std::holds_alternative<wish::Driver>(entry.wish.what))
      return;
    Restored restored = restore_entry(host_, entry);
    for (config::Problem& note : restored.notes) outcome_.notes.push_back(std::move(note));
    if (restored.faults.empty() && on_fault_ == OnFault::kStop) {
      journal_.erase(key_of(entry.wish));
      return;
    }
    for (config::Problem& fault : restored.faults) outcome_.faults.push_back(std::move(fault));
  }

  bool notice(const Wish& wish) {
    Entry* entry = journal_.find(key_of(wish));
    if (entry == nullptr || !std::get<before::Notice>(*entry->before).due)
      return step(wish, StepResult::kHeld);
    conduct_.begin(wish.why);
    if (Done given = give(host_, std::get<wish::Notice>(wish.what)); !given) {
      outcome_.faults.push_back(given.error());
      return step(wish, StepResult::kFailed);
    }
    *entry = {wish, before::Notice{false}, true};
    return step(wish, StepResult::kChanged);
  }

  // The notices behind this wish and its neighbours.
  void make_notices_due() {
    std::size_t i = index_;
    while (i < wishes_.size() && !is_notice(wishes_[i])) ++i;
    std::string after = key_of(wishes_[index_]);
    for (; i < wishes_.size() && is_notice(wishes_[i]); ++i) {
      journal_.put({wishes_[i], before::Notice{true}, false}, after);
      after = key_of(wishes_[i]);
    }
  }

  // The command line of the next boot is written before pages are reserved, and brings pages too:
  // should that boot come early, the journal knows how many there were.
  void record_pages() {
    for (const Wish& wish : wishes_) {
      if (!may_fall_short(wish) || journal_.find(key_of(wish)) != nullptr ||
          holds_wish(host_, wish))
        continue;
      if (auto before = record_before(host_, wish))
        journal_.put({wish, std::move(*before), false}, "");
    }
  }

  void put(Entry entry) {
    // In the order of the wishes, wherever record_pages() or an earlier run had it.
    if (scope_ == Scope::kWhole) journal_.erase(key_of(entry.wish));
    if (last_key_.empty() && scope_ == Scope::kWhole)
      journal_.put_first(std::move(entry));
    else
      journal_.put(std::move(entry), last_key_);
  }

  bool step(const Wish& wish, StepResult result) {
    outcome_.steps.push_back({wish.why, result});
    conduct_.end(outcome_.steps.back());
    return result != StepResult::kFailed || on_fault_ == OnFault::kGoOn || is_notice(wish);
  }

  Host& host_;
  Journal& journal_;
  const Wishes& wishes_;
  const Scope scope_;
  const OnFault on_fault_;
  const Conduct& conduct_;
  Outcome& outcome_;
  std::size_t index_ = 0;
  std::string last_key_;  // Of the last wish before this one that is in the journal.
};

bool lost_at_boot(const Wish& wish) {
  return !std::holds_alternative<wish::File>(wish.what) &&
         !std::holds_alternative<wish::Unit>(wish.what) &&
         !std::holds_alternative<wish::BootArguments>(wish.what) && !is_notice(wish);
}

}  // namespace

bool Outcome::changed() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.result != StepResult::kHeld; });
}

config::Problems faults_before(Host& host, const Wishes& wishes) {
  config::Problems problems;
  for (std::size_t i = 0; i < wishes.size(); ++i)
    std::visit(
        [&](const auto& what) {
          check(host, what, Earlier{&wishes, i}, problems);
        },
        wishes[i].what);
  return problems;
}

bool is_stale(const Entry& entry, const Wishes& wishes, Scope scope) {
  // Once the kernel runs with them, arguments on its line are wished for no more, and wanted still.
  if (scope != Scope::kWhole || std::holds_alternative<wish::BootArguments>(entry.wish.what))
    return false;
  return std::none_of(wishes.begin(), wishes.end(),
                      [&](const Wish& wish) { return key_of(wish) == key_of(entry.wish); });
}

Outcome grant(Host& host, Journal& journal, const Wishes& wishes, Scope scope,
              const Conduct& conduct) {
  Outcome outcome;
  const auto stale = [&](const Entry& entry) { return is_stale(entry, wishes, scope); };
  outcome.faults = faults_before(host, wishes);
  for (config::Problem& problem : held_nics(host, journal, stale))
    outcome.faults.push_back(std::move(problem));
  if (!outcome.faults.empty()) return outcome;

  if (std::any_of(journal.entries().begin(), journal.entries().end(), stale)) {
    outcome = take_back(host, journal, stale, conduct);
    if (!outcome.complete()) return outcome;
  }
  Granter(host, journal, wishes, scope, OnFault::kStop, conduct, outcome).run();
  return outcome;
}

Outcome grant_again(Host& host, Journal& journal, const Conduct& conduct) {
  Outcome outcome;
  if (journal.entries().empty()) return outcome;
  if (!journal.complete) {
    outcome.faults.push_back({Journal::kPath,
                              "set-up or undo was cut off before it was through; "
                              "nothing is set up at this boot",
                              "sudo ztcp_setup, or sudo ztcp_setup --undo"});
    return outcome;
  }
  Wishes wishes;
  for (const Entry& entry : journal.entries())
    if (lost_at_boot(entry.wish)) wishes.push_back(entry.wish);
  Granter(host, journal, wishes, Scope::kMore, OnFault::kGoOn, conduct, outcome).run();
  return outcome;
}

}  // namespace ztcp::setup
