// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/doorbell.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

std::vector<std::size_t> drained(Doorbell& bell) {
  std::vector<std::size_t> out;
  bell.drain([&](std::size_t i) { out.push_back(i); });
  return out;
}

TEST(Doorbell, DrainVisitsEachRungIndexOnce) {
  Doorbell bell;
  for (const std::size_t i : {0U, 63U, 64U, 4095U, 63U, 4096U, 32767U}) bell.ring(i);
  EXPECT_TRUE(bell.any());
  EXPECT_EQ(drained(bell), (std::vector<std::size_t>{0, 63, 64, 4095, 4096, 32767}));
  EXPECT_FALSE(bell.any());
  EXPECT_TRUE(drained(bell).empty());
}

TEST(Doorbell, RingDuringAVisitIsSeenByTheNextDrain) {
  Doorbell bell;
  bell.ring(5);
  bell.drain([&](std::size_t i) { bell.ring(i); });
  EXPECT_EQ(drained(bell), std::vector<std::size_t>{5});
}

// The visit sees the values that a thread wrote before it rang, and no ring is lost.
TEST(Doorbell, NoRingIsLostBetweenThreads) {
  constexpr std::size_t kRingers = 3;
  constexpr std::uint64_t kRings = 20000;
  Doorbell bell;
  std::array<std::atomic<std::uint64_t>, kRingers> written{};
  std::vector<std::thread> ringers;
  for (std::size_t r = 0; r < kRingers; ++r) {
    ringers.emplace_back([&, r] {
      for (std::uint64_t i = 1; i <= kRings; ++i) {
        written[r].store(i, std::memory_order_relaxed);
        bell.ring(r * 64 + 1);
      }
    });
  }
  std::array<std::uint64_t, kRingers> seen{};
  const auto all_seen = [&] {
    for (const std::uint64_t s : seen) {
      if (s != kRings) return false;
    }
    return true;
  };
  // Ends only if the last ring of each thread is followed by a visit that sees its value.
  while (!all_seen()) {
    bell.drain(
        [&](std::size_t i) { seen[i / 64] = written[i / 64].load(std::memory_order_relaxed); });
    std::this_thread::yield();
  }
  for (std::thread& t : ringers) t.join();
}

}  // namespace
}  // namespace ztcp::comms
