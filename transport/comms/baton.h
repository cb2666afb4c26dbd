// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The lock of a backend: only the thread that holds the baton may touch it. Pollers and NCCL's
// progress threads try once and go on without it. Control calls (listen, connect, close) wait for
// it, and a thread that runs turns in a loop leaves them a gap between two turns.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/cpu_pause.h"
#include "core/yielder.h"

namespace ztcp::comms {

class Baton {
 public:
  bool try_take() {
    return !held_.load(std::memory_order_seq_cst) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  // For the one thread that takes it turn after turn: fails while another thread waits, but only
  // kCourtesies times in a row. A waiting thread may have been scheduled out, and the NIC must not
  // stop until it runs again.
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
  // False, and not taken, once `gives_up()` returns true.
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
  // Sequentially consistent. For a thread that has just stored a word which others check after
  // give_and_check(): if another thread's check missed that store, then after this call everything
  // is visible that the other thread wrote before it gave the baton.
  bool is_held() const { return held_.load(std::memory_order_seq_cst); }
  void give() { held_.store(false, std::memory_order_release); }
  // For a holder that then checks the doorbell, because another thread may have rung it, found the
  // baton held and gone on. Sequentially consistent like try_take() and the doorbell: a plain
  // release may become visible after that check, so that neither thread would run the turn.
  void give_and_check() { held_.store(false, std::memory_order_seq_cst); }

  // How often in a row try_take_politely() leaves the baton to a waiting thread: a few
  // microseconds, several times as long as a running thread in take() needs.
  static constexpr std::uint32_t kCourtesies = 64;

 private:
  static constexpr std::uint32_t kSpins = 256;

  alignas(64) std::atomic<bool> held_{false};
  alignas(64) std::atomic<std::uint32_t> waiting_{0};
  std::uint32_t courtesies_ = 0;  // In a row; used by try_take_politely() alone.
};

}  // namespace ztcp::comms
