// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Who may touch an engine: whoever holds the baton. Pollers and NCCL's progress threads only try
// for it and go on without; control calls (listen, connect, close) wait their turn, and a thread
// that runs turns in a loop lets them in between two of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <sched.h>

namespace ztcp::ustack {

inline void cpu_pause() { __builtin_ia32_pause(); }

class Baton {
 public:
  bool try_take() {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  void take() {
    take_unless([] { return false; });
  }
  // False, and not taken, once `gives_up()` says so.
  template <class GivesUp>
  bool take_unless(GivesUp&& gives_up) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    bool taken = try_take();
    for (std::uint32_t tries = 0; !taken; ++tries) {
      // The holder may have been scheduled out in the middle of a turn.
      if (tries < kSpins) {
        cpu_pause();
      } else if (gives_up()) {
        break;
      } else {
        sched_yield();
      }
      taken = try_take();
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return taken;
  }
  void give() { held_.store(false, std::memory_order_release); }

  // Someone is inside take(): a polite poller stays away for a moment.
  bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr std::uint32_t kSpins = 256;

  alignas(64) std::atomic<bool> held_{false};
  alignas(64) std::atomic<std::uint32_t> waiting_{0};
};

struct AlreadyTaken {};

// Holds the baton for a scope.
class BatonHold {
 public:
  explicit BatonHold(Baton& baton) : baton_(baton) { baton_.take(); }
  BatonHold(Baton& baton, AlreadyTaken) : baton_(baton) {}
  ~BatonHold() { baton_.give(); }
  BatonHold(const BatonHold&) = delete;
  BatonHold& operator=(const BatonHold&) = delete;

 private:
  Baton& baton_;
};

}  // namespace ztcp::ustack
