// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// When an operator should hear of a NIC: when strangers, damaged frames and the like become many,
// at most once a minute of each kind. What is said then is nic_log.h's.
//
// A value: told the time and the counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "transport/core/clock.h"
#include "transport/core/count_watch.h"
#include "transport/ustack/engine/nic_counts.h"

namespace ztcp::ustack {

enum class Trouble : std::uint8_t {
  kStrangers,   // Connect.
  kNoPlace,     // For connections.
  kShortage,    // Of the process's memory, when somebody connects.
  kDamaged,     // Frames arrive.
  kSenseless,   // Frames arrive.
  kNoMemory,    // For frames.
  kGuesses,     // At connections.
  kMacsChange,  // Of neighbours.
};
inline constexpr std::size_t kTroubles = 8;

// What has become many.
struct Finding : CountFinding {
  Trouble trouble{};
};

class NicWatch {
 public:
  // Tells of each that is found now; mostly none.
  void look(TimePoint now, const NicCounts& counts,
            const std::function<void(const Finding&)>& tell);

 private:
  std::array<CountWatch, kTroubles> watches_{};
};

}  // namespace ztcp::ustack
