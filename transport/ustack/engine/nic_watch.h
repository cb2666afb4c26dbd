// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Decides when a NIC's counters deserve a warning: when invalid hellos, damaged frames and the like
// become frequent, at most once a minute for each kind. nic_log.h has the texts.
//
// A value: time and counts are arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/clock.h"
#include "core/count_watch.h"
#include "transport/ustack/engine/nic_counts.h"

namespace ztcp::ustack {

enum class Trouble : std::uint8_t {
  kInvalidHello,    // Connections without a valid hello were rejected.
  kTableFull,       // Connections were rejected at the connection limit.
  kAcceptNoMemory,  // Connections were rejected for lack of memory.
  kBadChecksum,     // Frames were dropped.
  kMalformed,       // Frames were dropped.
  kRxNoMemory,      // Frames were dropped for lack of memory.
  kChallengeAcks,   // Segments outside the window were answered (RFC 5961).
  kEcnFaults,       // Connections went on without ECN.
  kArpConflicts,    // A MAC address changed, or two hosts claim one IP address.
};
inline constexpr std::size_t kTroubles = 9;

// A kind of trouble that has become frequent.
struct Finding : CountFinding {
  Trouble trouble{};
};

class NicWatch {
 public:
  // Calls `tell` for each finding of this check; mostly there is none.
  void check(TimePoint now, const NicCounts& counts,
             const std::function<void(const Finding&)>& tell);

 private:
  std::array<CountWatch, kTroubles> watches_{};
};

}  // namespace ztcp::ustack
