// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/baton.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "transport/comms/doorbell.h"

namespace ztcp::comms {
namespace {

TEST(Baton, IsHeldByOneThreadAtATime) {
  Baton baton;
  ASSERT_TRUE(baton.try_take());
  EXPECT_FALSE(baton.try_take());
  EXPECT_FALSE(baton.try_take_politely());
  baton.give();
  EXPECT_TRUE(baton.try_take_politely());
  baton.give_and_check();
  EXPECT_TRUE(baton.try_take());
}

// A waiting thread that is scheduled out: this thread runs meanwhile, inside gives_up().
TEST(Baton, WaitingThreadThatDoesNotRunStopsNoOtherThread) {
  Baton baton;
  ASSERT_TRUE(baton.try_take());
  int turns = 0;
  const bool taken = baton.take_unless([&] {
    // The waiting thread is stopped here, and the poller goes on.
    baton.give();
    for (int i = 0; i < 10'000; ++i) {
      if (!baton.try_take_politely()) continue;
      ++turns;
      baton.give();
    }
    EXPECT_TRUE(baton.try_take());  // Held again: the waiting thread gives up.
    return true;
  });
  EXPECT_FALSE(taken);
  EXPECT_GT(turns, 100);
  EXPECT_LE(turns, 10'000 / static_cast<int>(Baton::kCourtesies)) << "no gap for the other thread";
}

TEST(Baton, PoliteTakeSucceedsAtOnceWhenNoThreadWaits) {
  Baton baton;
  ASSERT_TRUE(baton.try_take());
  baton.take_unless([&] {
    baton.give();
    EXPECT_FALSE(baton.try_take_politely());
    EXPECT_TRUE(baton.try_take());
    return true;
  });
  baton.give();
  EXPECT_TRUE(baton.try_take_politely());
}

// One thread rings and tries to take the baton; the other gives it and checks the doorbell. In
// every order of memory accesses one of the two must notice, or the posts wait for another call.
// This is no proof: with a plain release it fails seldom where the threads share CPUs.
TEST(Baton, RingIsHeardByTheGiverOrTheRingingThreadGetsTheBaton) {
  constexpr int kRounds = 20'000;
  constexpr int kLeastRounds = 100;
  // On a busy machine a round takes as long as both threads wait for a CPU.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  constexpr int kOver = -1;
  Baton baton;
  Doorbell bell;
  alignas(64) std::atomic<int> round{0};
  alignas(64) std::atomic<int> ringer_done{0};
  alignas(64) bool ringer_got_it = false;
  std::thread ringer([&] {
    for (int i = 1; i <= kRounds; ++i) {
      int begun = 0;
      for (int spins = 0; (begun = round.load(std::memory_order_acquire)) != i; ++spins) {
        if (begun == kOver) return;
        if (spins % 16384 == 16383) std::this_thread::yield();
      }
      for (int delay = i * 7 % 23; delay > 0; --delay) asm volatile("nop");
      bell.ring(5);
      ringer_got_it = baton.try_take();
      ringer_done.store(i, std::memory_order_release);
    }
  });
  int missed = 0;
  for (int i = 1; i <= kRounds; ++i) {
    if (i > kLeastRounds && std::chrono::steady_clock::now() > deadline) break;
    if (!baton.try_take()) ADD_FAILURE() << "round " << i;
    round.store(i, std::memory_order_release);
    for (int delay = i % 1024; delay > 0; --delay) asm volatile("nop");
    baton.give_and_check();
    const bool heard = bell.any();
    for (int spins = 0; ringer_done.load(std::memory_order_acquire) != i; ++spins)
      if (spins % 16384 == 16383) std::this_thread::yield();
    missed += !heard && !ringer_got_it ? 1 : 0;
    if (ringer_got_it) baton.give();
    bell.drain([](std::size_t) {});
  }
  round.store(kOver, std::memory_order_release);
  ringer.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace ztcp::comms
