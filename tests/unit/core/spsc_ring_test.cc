// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/spsc_ring.h"

#include <cstdint>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(SpscRing, FirstInFirstOutUntilFull) {
  SpscRing<int> ring(3);
  EXPECT_EQ(ring.capacity(), 4U);
  EXPECT_TRUE(ring.empty());
  for (int lap = 0; lap < 5; ++lap) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.try_push(lap * 10 + i));
    EXPECT_FALSE(ring.try_push(99));
    int value = 0;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(ring.try_pop(value));
      EXPECT_EQ(value, lap * 10 + i);
    }
    EXPECT_FALSE(ring.try_pop(value));
  }
}

TEST(SpscRing, AFullRingLeavesTheValueAlone) {
  SpscRing<std::unique_ptr<int>> ring(1);
  EXPECT_TRUE(ring.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(ring.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST(SpscRing, TwoThreadsLoseAndReorderNothing) {
  struct Item {
    std::uint64_t number = 0;
    std::uint64_t inverse = 0;  // Two words: a torn or early read shows.
  };
  constexpr std::uint64_t kItems = 200'000;
  SpscRing<Item> ring(64);
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kItems; ++i)
      while (!ring.try_push(Item{i, ~i})) std::this_thread::yield();
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kItems; ++i) {
    Item item;
    while (!ring.try_pop(item)) std::this_thread::yield();
    wrong += item.number == i && item.inverse == ~i ? 0U : 1U;
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace ztcp
