// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Connections to a listener that did not belong to the job, of any transport.
#pragma once

#include <array>
#include <cstdint>

#include "transport/stats/counter_row.h"

namespace ztcp::msg {

struct StrangerCounts {
  std::uint64_t bad_magic = 0;
  std::uint64_t unknown_cookie = 0;  // Or an unknown ticket.
  std::uint64_t bad_key = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t pushed_out = 0;  // Silent or refused, when a newer one needed the place.
  std::uint64_t other_version = 0;
};

using StrangerCounter = stats::CounterRow<StrangerCounts>;
inline constexpr std::array kStrangerCounters = {
    StrangerCounter{"rejected_bad_magic", stats::Counter::kStrangers,
                    [](const StrangerCounts& counts) { return counts.bad_magic; }},
    StrangerCounter{stats::Counter::kWrongCookies,
                    [](const StrangerCounts& counts) { return counts.unknown_cookie; }},
    StrangerCounter{stats::Counter::kWrongKeys,
                    [](const StrangerCounts& counts) { return counts.bad_key; }},
    StrangerCounter{"rejected_timed_out", stats::Counter::kStrangers,
                    [](const StrangerCounts& counts) { return counts.timed_out; }},
    StrangerCounter{"rejected_pushed_out", stats::Counter::kStrangers,
                    [](const StrangerCounts& counts) { return counts.pushed_out; }},
    StrangerCounter{"rejected_version", stats::Counter::kStrangers,
                    [](const StrangerCounts& counts) { return counts.other_version; }},
};

}  // namespace ztcp::msg
