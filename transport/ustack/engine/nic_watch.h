// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// When an operator should hear of a NIC: when strangers, damaged frames and the like become many,
// at most once a minute of each kind. What is said then is nic_log.h's.
//
// A value: told the time and the counts. It allocates only when there is something to say.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/core/clock.h"
#include "transport/ustack/engine/nic_counts.h"

namespace ztcp::ustack {

enum class Trouble : std::uint8_t {
  kStrangers,   // Connect.
  kNoPlace,     // For connections.
  kDamaged,     // Frames arrive.
  kSenseless,   // Frames arrive.
  kNoMemory,    // For frames.
  kGuesses,     // At connections.
  kMacsChange,  // Of neighbours.
};
inline constexpr std::size_t kTroubles = 7;

// What has become many.
struct Finding {
  struct Part {
    const char* name;
    std::uint64_t count;
  };
  std::uint64_t total() const;

  Trouble trouble{};
  Duration span{};
  std::vector<Part> parts;  // None of them zero.
};

class NicWatch {
 public:
  // Of each kind: what is counted against its threshold, and how often it is warned of at most.
  static constexpr Duration kInterval = std::chrono::minutes(1);

  // Mostly nothing.
  std::vector<Finding> look(TimePoint now, const NicCounts& counts);

 private:
  struct Seen {
    TimePoint since{};
    TimePoint warned = TimePoint::min();
    NicCounts counts;  // At `since`.
  };
  std::array<Seen, kTroubles> seen_{};
};

}  // namespace ztcp::ustack
