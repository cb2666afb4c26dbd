// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Arithmetic of AF_XDP rings, with this test as the kernel.
#include "transport/link/xdp/ring.h"

#include <array>

#include <gtest/gtest.h>

namespace ztcp::link::xdp {
namespace {

constexpr std::uint32_t kSize = 4;

struct SharedRing {
  RingMemory<std::uint64_t> memory() {
    return {&producer, &consumer, &flags, entries.data(), kSize};
  }
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  std::uint32_t flags = 0;
  std::array<std::uint64_t, kSize> entries{};
};

TEST(XdpRing, ProducerFillsTheRingAndNoMore) {
  SharedRing shared;
  ProducerRing ring(shared.memory());
  EXPECT_EQ(ring.room(1), kSize);
  for (std::uint64_t i = 0; i < kSize; ++i) ring.put(10 + i);
  EXPECT_EQ(ring.room(1), 0U);
  EXPECT_EQ(shared.producer, 0U) << "not published yet";
  ring.publish();
  EXPECT_EQ(shared.producer, kSize);
  EXPECT_EQ(shared.entries, (std::array<std::uint64_t, kSize>{10, 11, 12, 13}));
  EXPECT_FALSE(ring.is_drained());
  shared.consumer = 2;
  EXPECT_EQ(ring.room(1), 2U);
  shared.consumer = kSize;
  EXPECT_TRUE(ring.is_drained());
}

TEST(XdpRing, ProducerWrapsAround) {
  SharedRing shared;
  ProducerRing ring(shared.memory());
  for (std::uint64_t i = 0; i < 3 * kSize; ++i) {
    ASSERT_GE(ring.room(1), 1U);
    ring.put(i);
    ring.publish();
    EXPECT_EQ(shared.entries[i % kSize], i);
    shared.consumer = shared.producer;
  }
}

TEST(XdpRing, ConsumerReadsInOrderAndGivesBack) {
  SharedRing shared;
  ConsumerRing ring(shared.memory());
  EXPECT_EQ(ring.available(1), 0U);
  shared.entries = {20, 21, 22, 23};
  shared.producer = 3;
  EXPECT_EQ(ring.available(1), 3U);
  EXPECT_EQ(ring.peek(0), 20U);
  EXPECT_EQ(ring.peek(2), 22U);
  ring.take(2);
  EXPECT_EQ(shared.consumer, 2U);
  EXPECT_EQ(ring.peek(0), 22U);
  shared.entries[0] = 24;
  shared.producer = 5;
  EXPECT_EQ(ring.available(3), 3U);
  EXPECT_EQ(ring.peek(2), 24U);
}

TEST(XdpRing, WakeupIsTheKernelsFlag) {
  SharedRing shared;
  const ProducerRing ring(shared.memory());
  EXPECT_FALSE(ring.needs_wakeup());
  shared.flags = XDP_RING_NEED_WAKEUP;
  EXPECT_TRUE(ring.needs_wakeup());
}

}  // namespace
}  // namespace ztcp::link::xdp
