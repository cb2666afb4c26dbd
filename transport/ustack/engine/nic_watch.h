// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// When an operator should hear of a NIC: when strangers, damaged frames and the like become many,
// at most once a minute of each kind. What is said then is nic_log.h's.
//
// A value: told the time and the counts.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "transport/core/clock.h"
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
struct Finding {
  static constexpr std::size_t kMostParts = 6;
  struct Part {
    const char* name;
    std::uint64_t count;
  };
  std::span<const Part> parts() const { return std::span(all_parts).first(part_count); }
  std::uint64_t total() const;

  Trouble trouble{};
  Duration span{};
  std::array<Part, kMostParts> all_parts{};  // The first part_count, none of which is zero.
  std::size_t part_count = 0;
};

class NicWatch {
 public:
  // Of each kind: what is counted against its threshold, and how often it is warned of at most.
  static constexpr Duration kInterval = std::chrono::minutes(1);

  // Tells of each that is found now; mostly none.
  void look(TimePoint now, const NicCounts& counts,
            const std::function<void(const Finding&)>& tell);

 private:
  struct Seen {
    TimePoint since{};
    TimePoint warned = TimePoint::min();
    NicCounts counts;  // At `since`.
  };
  std::array<Seen, kTroubles> seen_{};
};

}  // namespace ztcp::ustack
