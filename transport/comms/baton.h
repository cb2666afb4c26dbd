// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Who may touch an engine: whoever holds the baton. Pollers and NCCL's progress threads only try
// for it and go on without; control calls (listen, connect, close) wait their turn, and a thread
// that runs turns in a loop lets them in between two of them, if they are there to take it.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/core/yielder.h"

namespace ztcp::comms {

inline void cpu_pause() { __builtin_ia32_pause(); }

class Baton {
 public:
  bool try_take() {
    return !held_.load(std::memory_order_seq_cst) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  // For the one thread that takes it turn after turn: stays away while somebody waits, but not for
  // long. Who waits may have been scheduled out, and must not stop the NIC until it runs again.
  bool try_take_politely() {
    if (waiting_.load(std::memory_order_relaxed) != 0 && courtesies_ < kCourtesies) {
      ++courtesies_;
      return false;
    }
    if (!try_take()) return false;
    courtesies_ = 0;
    return true;
  }
  void take() {
    take_unless([] { return false; });
  }
  // False, and not taken, once `gives_up()` says so.
  template <class GivesUp>
  bool take_unless(GivesUp&& gives_up) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    bool taken = try_take();
    Yielder yielder;
    for (std::uint32_t tries = 0; !taken; ++tries) {
      // The holder may have been scheduled out in the middle of a turn.
      if (tries < kSpins) {
        cpu_pause();
      } else if (gives_up()) {
        break;
      } else {
        yielder.yield();
      }
      taken = try_take();
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return taken;
  }
  void give() { held_.store(false, std::memory_order_release); }
  // For a giver that looks afterwards whether somebody left word (rang a doorbell), found the baton
  // held, and went away. Sequentially consistent like try_take() and the doorbell: a plain release
  // may become visible after the giver's look, and then neither of the two sees the other.
  void give_and_look() { held_.store(false, std::memory_order_seq_cst); }

  // How often try_take_politely() stays away in a row: a few microseconds, several times what a
  // thread in take() needs that runs.
  static constexpr std::uint32_t kCourtesies = 64;

 private:
  static constexpr std::uint32_t kSpins = 256;

  alignas(64) std::atomic<bool> held_{false};
  alignas(64) std::atomic<std::uint32_t> waiting_{0};
  std::uint32_t courtesies_ = 0;  // try_take_politely()'s.
};

}  // namespace ztcp::comms
