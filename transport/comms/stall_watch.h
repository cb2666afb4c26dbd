// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Detects that the thread which has taken over runs no turns, because other threads have its CPU.
// Asked by the threads that would run the turns otherwise, at little cost: most calls only count.
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.h"

namespace ztcp::comms {

class StallWatch {
 public:
  // One call in so many reads the clock and the number of turns, whose cache line each turn writes.
  // A polling thread makes such a call every few microseconds.
  static constexpr std::uint32_t kCallsPerCheck = 64;

  explicit StallWatch(Duration timeout) : timeout_(timeout) {}

  // The value of `turns`, if it has not changed for `timeout`.
  template <class ReadClock>
  std::optional<std::uint64_t> stuck_at(const std::atomic<std::uint64_t>& turns,
                                        ReadClock&& read_clock) {
    // Calls of several threads may be lost, which only delays the next check.
    const std::uint32_t calls = calls_.load(std::memory_order_relaxed) + 1;
    calls_.store(calls, std::memory_order_relaxed);
    if (calls % kCallsPerCheck != 0) return std::nullopt;
    return check(turns.load(std::memory_order_relaxed), read_clock());
  }

 private:
  std::optional<std::uint64_t> check(std::uint64_t turns, TimePoint now) {
    if (turns != seen_.load(std::memory_order_acquire)) {
      since_.store(now, std::memory_order_relaxed);
      seen_.store(turns, std::memory_order_release);
      return std::nullopt;
    }
    if (now - since_.load(std::memory_order_relaxed) < timeout_) return std::nullopt;
    return turns;
  }

  const Duration timeout_;
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<TimePoint> since_{TimePoint{}};  // When seen_ last changed.
};

}  // namespace ztcp::comms
