// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Maps MAC addresses to the ports they were last seen at. Set-associative, as in switch chips:
// fixed memory, no tombstones, and a flood of forged addresses only causes flooding. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/address.h"
#include "core/clock.h"

namespace ztcp::fabric {

using PortIndex = std::uint32_t;

class MacTable {
 public:
  explicit MacTable(Duration age_limit) : age_limit_(age_limit), sets_(kSets) {}

  // Returns true if the address was known at another port before.
  bool learn(TimePoint now, const MacAddress& mac, PortIndex port) {
    Set& set = sets_[set_of(mac)];
    Entry* victim = &set[0];
    for (Entry& entry : set) {
      if (entry.used && entry.mac == mac) {
        const bool moved = entry.port != port && !aged(now, entry);
        entry.port = port;
        entry.seen = now;
        return moved;
      }
      if (victim->used && (!entry.used || entry.seen < victim->seen)) victim = &entry;
    }
    *victim = Entry{now, mac, true, port};
    return false;
  }

  std::optional<PortIndex> find(TimePoint now, const MacAddress& mac) const {
    for (const Entry& entry : sets_[set_of(mac)])
      if (entry.used && entry.mac == mac && !aged(now, entry)) return entry.port;
    return std::nullopt;
  }

  std::size_t size(TimePoint now) const {
    std::size_t live = 0;
    for (const Set& set : sets_)
      for (const Entry& entry : set)
        if (entry.used && !aged(now, entry)) ++live;
    return live;
  }

 private:
  static constexpr std::size_t kSets = 1024;
  static constexpr std::size_t kWays = 4;

  struct Entry {
    TimePoint seen{};
    MacAddress mac;
    bool used = false;
    PortIndex port = 0;
  };
  using Set = std::array<Entry, kWays>;

  bool aged(TimePoint now, const Entry& entry) const { return now - entry.seen > age_limit_; }

  static std::size_t set_of(const MacAddress& mac) {
    std::uint64_t h = 0;
    for (const std::uint8_t byte : mac.bytes) h = (h << 8U) | byte;
    return (h * 0x9e3779b97f4a7c15U) >> 54U;  // The top 10 bits: kSets values.
  }

  Duration age_limit_;
  std::vector<Set> sets_;
};

}  // namespace ztcp::fabric
