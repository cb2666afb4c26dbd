// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Decides when to tell an operator of a counted event: when it becomes frequent, then at most once
// a minute while it lasts, with the number since the last line.
//
// A value: time and counts are arguments.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"

namespace ztcp {

struct CountFinding {
  static constexpr std::size_t kMostParts = 6;
  struct Part {
    const char* name = "";
    std::uint64_t count = 0;
  };
  std::span<const Part> parts() const { return std::span(all_parts).first(part_count); }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const Part& part : parts()) sum += part.count;
    return sum;
  }

  Duration span{};
  std::array<Part, kMostParts> all_parts{};  // The first part_count are used; none of them is zero.
  std::size_t part_count = 0;
};

// An event in the words of a log line: "rejected", "connections without a valid hello".
struct CountedEvent {
  const char* verb;
  const char* objects;
};

// "<verb> 37 <objects> in 3 s (30 rejected_bad_magic, ...): <advice>"
std::string describe(const CountFinding& finding, const CountedEvent& event,
                     const std::string& advice);

class CountWatch {
 public:
  using Part = CountFinding::Part;
  static constexpr Duration kInterval = std::chrono::minutes(1);

  // `totals`: the totals of all counters, in the same order at each call. Returns nothing while the
  // event is rare, else the counts since the last finding, or within the last minute.
  std::optional<CountFinding> check(TimePoint now, std::uint64_t threshold,
                                    std::span<const Part> totals) {
    if (since_ == TimePoint{}) since_ = now;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < totals.size(); ++i) total += totals[i].count - seen_[i];
    const bool is_frequent = total >= threshold;
    if (!is_frequent) {
      if (now - since_ >= kInterval) begin(now, totals);
      return std::nullopt;
    }
    if (warned_ && now - *warned_ < kInterval) return std::nullopt;
    CountFinding finding{.span = now - since_};
    for (std::size_t i = 0; i < totals.size(); ++i)
      if (const std::uint64_t count = totals[i].count - seen_[i]; count != 0)
        finding.all_parts[finding.part_count++] = {totals[i].name, count};
    begin(now, totals);
    warned_ = now;
    return finding;
  }

 private:
  void begin(TimePoint now, std::span<const Part> totals) {
    since_ = now;
    for (std::size_t i = 0; i < totals.size(); ++i) seen_[i] = totals[i].count;
  }

  TimePoint since_{};
  std::optional<TimePoint> warned_;
  std::array<std::uint64_t, CountFinding::kMostParts> seen_{};  // At since_.
};

}  // namespace ztcp
