// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The warning that processes outside the job connect to a device's listener, in the same words for
// all transports. ustack finds them in its NIC's counters (nic_watch.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/count_watch.h"

namespace ztcp::comms {

inline constexpr CountedEvent kInvalidHello{"rejected", "connections without a valid hello"};
inline constexpr std::uint64_t kManyStrangers = 10;

class StrangerLog {
 public:
  static constexpr Duration kCheckInterval = std::chrono::seconds(1);

  // True once per interval, so that turns can ask at little cost.
  bool is_due(TimePoint now) const { return now >= next_check_; }
  // `totals`: as for CountWatch::check(). `ports`: the listening ports, for the advice.
  std::optional<std::string> check(TimePoint now, std::span<const CountWatch::Part> totals,
                                   const std::string& ports) {
    next_check_ = now + kCheckInterval;
    const auto found = watch_.check(now, kManyStrangers, totals);
    if (!found) return std::nullopt;
    return describe(*found, kInvalidHello,
                    "open " + ports +
                        " to the job's hosts alone (security group); hosts of the job need the "
                        "same ztcp and cluster_key");
  }

 private:
  TimePoint next_check_{};
  CountWatch watch_;
};

}  // namespace ztcp::comms
