// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/memory_link.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"

namespace ztcp::link {
namespace {

using test::flatten;
using test::SentFrame;

TEST(MemoryLink, CarriesEverySizeBothWays) {
  auto [a, b] = make_memory_links();
  for (std::size_t size = 60; size <= 1514; ++size) {
    SentFrame sent(static_cast<std::uint32_t>(size), size, size % 9);
    if (size % 9 == 0 && size > 128) sent = SentFrame(1, size, 1);
    Link& from = size % 2 == 0 ? *a : *b;
    Link& to = size % 2 == 0 ? *b : *a;
    ASSERT_EQ(from.transmit({&sent.frame(), 1}), 1U);
    sent.scribble();
    std::array<RxFrame, 2> received;
    ASSERT_EQ(to.receive(received), 1U);
    EXPECT_EQ(flatten(received[0]), sent.bytes());
    to.release(std::span(received).first(1));
  }
}

TEST(MemoryLink, TakesAsManyFramesAsTheReceiverHasRoomFor) {
  auto [a, b] = make_memory_links({.frames = 4});
  SentFrame sent(1, 100, 1);
  const std::vector<TxFrame> burst(6, sent.frame());
  EXPECT_EQ(a->transmit(burst), 4U);
  std::array<RxFrame, 6> received;
  ASSERT_EQ(b->receive(received), 4U);
  EXPECT_EQ(a->transmit(burst), 0U) << "all four are held";
  received[1].kept = true;
  b->release(std::span(received).first(4));
  EXPECT_EQ(a->transmit(burst), 3U);
  received[1].kept = false;
  b->release(std::span(received).subspan(1, 1));
  EXPECT_EQ(a->transmit(burst), 1U);
  EXPECT_EQ(a->counters().tx_ring_full, 4U);
}

TEST(MemoryLink, ReceivesWithAllKept) {
  for (const std::uint32_t frames : {256U, 8U}) {
    auto [a, b] = make_memory_links({.frames = frames});
    SentFrame sent(1, 100, 1);
    test::expect_it_receives_with_all_kept(*b, [&, from = a.get()] {
      ASSERT_EQ(from->transmit({&sent.frame(), 1}), 1U);
    });
  }
}

TEST(MemoryLink, DropsFramesLargerThanTheMtu) {
  auto [a, b] = make_memory_links();
  SentFrame large(1, 1515, 1);
  EXPECT_EQ(a->transmit({&large.frame(), 1}), 1U);
  EXPECT_EQ(a->counters().tx_dropped, 1U);
  std::array<RxFrame, 1> received;
  EXPECT_EQ(b->receive(received), 0U);
}

TEST(MemoryLink, DeliversSuperSegmentsWhole) {
  auto [a, b] = make_memory_links({.max_super_segment_bytes = 60000});
  SentFrame sent(3, 60054, 4);
  sent.frame().segment_size_bytes = 1448;
  ASSERT_EQ(a->transmit({&sent.frame(), 1}), 1U);
  std::array<RxFrame, 1> received;
  ASSERT_EQ(b->receive(received), 1U);
  EXPECT_EQ(flatten(received[0]), sent.bytes());
  b->release(received);
}

TEST(MemoryLink, CarriesFramesBetweenThreads) {
  constexpr std::uint32_t kFrames = 20000;
  auto [a, b] = make_memory_links({.frames = 32});
  std::thread sender([&link = *a] {
    for (std::uint32_t i = 0; i < kFrames;) {
      SentFrame sent(i, 60 + i % 400, 1 + i % 3);
      if (link.transmit({&sent.frame(), 1}) == 1) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint32_t next = 0;
  bool same = true;
  while (next < kFrames) {
    std::array<RxFrame, 8> received;
    const std::size_t count = b->receive(received);
    if (count == 0) std::this_thread::yield();
    for (std::size_t i = 0; i < count; ++i, ++next) {
      const SentFrame expected(next, 60 + next % 400, 1);
      same = same && flatten(received[i]) == expected.bytes();
    }
    b->release(std::span(received).first(count));
  }
  sender.join();
  EXPECT_TRUE(same);
}

}  // namespace
}  // namespace ztcp::link
