// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How often, and by how much, the thread that shall run turns ran one late: it had no CPU, because
// other threads had it, or because the machine below this one did not run the CPU. Costs no reading
// of a clock beside the turn's own.
//
// The thread's own; any thread may ask what was counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "transport/core/clock.h"

namespace ztcp::comms {

class LateTurns {
 public:
  // Less is what a timer, a wake-up or a long turn takes. A tick of the kernel is 1 to 10 ms.
  static constexpr Duration kLate = std::chrono::milliseconds(1);

  // The next turn is due at `due`: now where the thread polls, when its sleep ends, or when another
  // thread called it.
  void expect(TimePoint due) { due_ = due; }
  // No turn is due.
  void expect_none() { due_ = kNever; }
  // A turn begins.
  void on_turn(TimePoint now) {
    if (now - kLate < due_) return;
    count_.store(count() + 1, std::memory_order_relaxed);
    if (now - due_ > longest()) longest_.store(now - due_, std::memory_order_relaxed);
  }

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  Duration longest() const { return longest_.load(std::memory_order_relaxed); }
  // Behind a NIC's counts: empty, or ", and its thread ran late 3 times, by up to 4.1 ms".
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
};

}  // namespace ztcp::comms
