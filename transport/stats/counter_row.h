// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A transport's list of its counters: the name in the log, the row in the table of all counters,
// and where the value is. Page and log lines read the same list, so that they can't differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/count_watch.h"
#include "transport/stats/counters.h"

namespace ztcp::stats {

// `Counts`: a snapshot of a transport's counters.
template <class Counts>
struct CounterRow {
  using Read = std::uint64_t (*)(const Counts&);

  // A counter of the table, by its name there.
  constexpr CounterRow(Counter of_table, Read value)
      : name(kCounterTexts[static_cast<std::size_t>(of_table)].name),
        counter(of_table),
        read(value) {}
  // A part of a counter of the table, under a name of its own.
  constexpr CounterRow(const char* part, Counter of_table, Read value)
      : name(part), counter(of_table), read(value) {}
  // A counter that only the log has.
  constexpr CounterRow(const char* in_log, Read value) : name(in_log), read(value) {}

  const char* name;
  Counter counter = Counter::kNumber;
  Read read;
};

template <class Rows, class Counts>
void add_to(CounterValues& to, const Rows& rows, const Counts& counts) {
  for (const CounterRow<Counts>& row : rows)
    if (row.counter != Counter::kNumber) to[row.counter] += row.read(counts);
}

// For a CountWatch.
template <class Counts, std::size_t N>
std::array<CountWatch::Part, N> totals_of(const std::array<CounterRow<Counts>, N>& rows,
                                          const Counts& counts) {
  std::array<CountWatch::Part, N> totals;
  for (std::size_t i = 0; i < N; ++i) totals[i] = {rows[i].name, rows[i].read(counts)};
  return totals;
}

}  // namespace ztcp::stats
