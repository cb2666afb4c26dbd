// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Counts turns that the background thread ran late, and by how much: it had no CPU, because other
// threads had it, or because a hypervisor did not run this machine. Reads no clock besides the
// turn's own.
//
// Written by that thread alone; any thread may read the counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "core/clock.h"

namespace ztcp::comms {

class LateTurns {
 public:
  // A timer, a wake-up or a long turn takes less. A tick of the kernel is 1 to 10 ms.
  static constexpr Duration kLate = std::chrono::milliseconds(1);

  // The next turn is due at `due`: now while the thread polls, else when its sleep ends or when
  // another thread called it.
  void expect(TimePoint due) { due_ = due; }
  // No turn is due.
  void expect_none() { due_ = kNever; }
  // A turn begins.
  void on_turn(TimePoint now) {
    if (now - kLate < due_) return;
    count_.store(count() + 1, std::memory_order_relaxed);
    total_.store(total() + (now - due_), std::memory_order_relaxed);
    if (now - due_ > longest()) longest_.store(now - due_, std::memory_order_relaxed);
  }

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  Duration total() const { return total_.load(std::memory_order_relaxed); }
  Duration longest() const { return longest_.load(std::memory_order_relaxed); }
  // Follows a NIC's counters: empty, or ", and its thread ran late 3 times, by up to 4.1 ms".
  std::string text() const {
    const std::uint64_t times = count();
    if (times == 0) return {};
    return fmt::format(", and its thread ran late {} time{}, by up to {:.1f} ms", times,
                       times == 1 ? "" : "s",
                       std::chrono::duration<double, std::milli>(longest()).count());
  }

 private:
  TimePoint due_ = kNever;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<Duration> longest_{Duration{}};
  std::atomic<Duration> total_{Duration{}};
};

}  // namespace ztcp::comms
