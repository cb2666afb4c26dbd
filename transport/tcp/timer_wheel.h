// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The next deadline of each connection: a hashed, hierarchical wheel with one node per connection,
// identified by index. Owned by a Stack.
//
// Deadlines move with every ACK, nearly always later. A node moves only to an earlier time; one
// that fires too early is checked and scheduled again, which costs far less than moving it each
// time. Time counts in ticks of 16 us, rounded up: nothing fires before its time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/clock.h"

namespace ztcp::tcp {

class TimerWheel {
 public:
  explicit TimerWheel(std::uint32_t nodes) : nodes_(nodes) {}

  // The node fires at `deadline`, or earlier if it was due earlier.
  void schedule(std::uint32_t node, TimePoint deadline);
  void cancel(std::uint32_t node);

  // Calls fn(node) for each node that is due; it is out of the wheel before the call, and may be
  // scheduled again in it.
  template <class Fn>
  void advance(TimePoint now, Fn&& fn) {
    const std::uint64_t target = floor_tick(now);
    turn_ = std::max(turn_, target);
    for (Expiry next = first(); next.tick <= target; next = first()) {
      if (next.tick > current_) current_ = next.tick;
      for (std::uint32_t node = slots_[next.level][next.slot]; node != kNone;) {
        remove(node);
        if (nodes_[node].tick <= current_)
          fn(node);
        else
          insert(node);  // Into a finer level.
        node = slots_[next.level][next.slot];
      }
    }
    if (target > current_) current_ = target;
  }

  // When advance() has something to do; kNever when the wheel is empty.
  TimePoint next_deadline() const;

 private:
  static constexpr unsigned kTickShift = 14;  // 16384 ns
  static constexpr unsigned kSlotShift = 6;
  static constexpr unsigned kSlots = 1U << kSlotShift;
  // Enough for every 64-bit time, so nothing wraps.
  static constexpr unsigned kLevels = 9;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint64_t kNoTick = UINT64_MAX;

  struct Node {
    std::uint64_t tick = kNoTick;  // kNoTick: not in the wheel.
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
    std::uint8_t level = 0;
    std::uint8_t slot = 0;
    bool queued = false;
  };
  struct Expiry {
    std::uint64_t tick = kNoTick;
    unsigned level = 0;
    unsigned slot = 0;
  };

  static std::uint64_t floor_tick(TimePoint time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count()) >> kTickShift;
  }
  Expiry first() const;
  void insert(std::uint32_t node);
  void remove(std::uint32_t node);

  static constexpr std::array<std::uint32_t, kSlots> empty_level() {
    std::array<std::uint32_t, kSlots> level{};
    level.fill(kNone);
    return level;
  }
  static constexpr std::array<std::array<std::uint32_t, kSlots>, kLevels> empty_slots() {
    std::array<std::array<std::uint32_t, kSlots>, kLevels> slots{};
    slots.fill(empty_level());
    return slots;
  }

  std::uint64_t current_ = 0;
  std::uint64_t turn_ = 0;  // Tick of the latest advance(), which current_ catches up with.
  std::array<std::uint64_t, kLevels> occupied_{};  // One bit per slot.
  std::array<std::array<std::uint32_t, kSlots>, kLevels> slots_ = empty_slots();
  std::vector<Node> nodes_;
};

}  // namespace ztcp::tcp
