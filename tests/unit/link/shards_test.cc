// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shards.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "transport/link/memory_link.h"

namespace ztcp::link {
namespace {

using test::flatten;
using test::SentFrame;

// A port of three queues, each of which the test fills from its other end.
class Shards : public testing::Test {
 protected:
  static constexpr std::uint32_t kFrames = 1024;

  Shards() {
    std::vector<std::unique_ptr<Link>> queues;
    for (int i = 0; i < 3; ++i) {
      auto [queue, device] = make_memory_links({.frames = kFrames});
      queues.push_back(std::move(queue));
      devices.push_back(std::move(device));
    }
    shards = join_shards(std::move(queues));
  }

  // Makes a frame arrive at that queue.
  std::vector<std::byte> arrive(std::size_t queue, std::uint32_t seed = 1) {
    SentFrame sent(seed, 200, 1);
    EXPECT_EQ(devices[queue]->transmit(std::span(&sent.frame(), 1)), 1U);
    return sent.bytes();
  }
  RxFrame receive_one(std::size_t shard) {
    RxFrame frame;
    EXPECT_EQ(shards[shard]->receive(std::span(&frame, 1)), 1U);
    return frame;
  }
  bool has_none(std::size_t shard) {
    RxFrame frame;
    return shards[shard]->receive(std::span(&frame, 1)) == 0;
  }
  void release(std::size_t shard, RxFrame& frame) { shards[shard]->release(std::span(&frame, 1)); }
  void hand(std::size_t from, std::uint8_t to, RxFrame& frame) {
    frame.hand_to = to;
    release(from, frame);
  }

  std::vector<std::unique_ptr<Link>> devices;
  std::vector<std::unique_ptr<Link>> shards;
};

TEST_F(Shards, ReportTheirIndexAndNumber) {
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(shards[i]->capabilities().shard, i);
    EXPECT_EQ(shards[i]->capabilities().shards, 3);
    EXPECT_LT(shards[i]->capabilities().max_kept_frames,
              devices[i]->capabilities().max_kept_frames);
  }
}

TEST_F(Shards, AFrameIsHandedOverByPointerAndReturnsToItsQueue) {
  const auto bytes = arrive(0);
  RxFrame frame = receive_one(0);
  EXPECT_EQ(frame.port, 0);
  const std::byte* const memory = frame.head.data();
  frame.checksum_good = true;
  hand(0, 2, frame);
  EXPECT_TRUE(has_none(0));
  EXPECT_TRUE(has_none(1));
  RxFrame handed = receive_one(2);
  EXPECT_EQ(handed.head.data(), memory);
  EXPECT_EQ(handed.port, 0) << "by which queue it came";
  EXPECT_EQ(handed.hand_to, RxFrame::kNobody);
  EXPECT_TRUE(handed.checksum_good);
  EXPECT_EQ(flatten(handed), bytes);
  release(2, handed);
  EXPECT_TRUE(has_none(2));
}

TEST_F(Shards, AFrameMayBeHandedOnRepeatedly) {
  arrive(1);
  RxFrame frame = receive_one(1);
  hand(1, 2, frame);
  RxFrame second = receive_one(2);
  hand(2, 0, second);
  RxFrame third = receive_one(0);
  EXPECT_EQ(third.port, 1);
  release(0, third);
  EXPECT_TRUE(has_none(0) && has_none(1) && has_none(2));
}

// Every frame of the device comes back to it, whichever shards held it and in any order.
TEST_F(Shards, NoFrameIsLost) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    std::array<RxFrame, 64> frames;
    for (std::uint32_t i = 0; i < 64; ++i) arrive(0, round * 64 + i);
    ASSERT_EQ(shards[0]->receive(frames), 64U);
    for (std::size_t i = 0; i < 64; ++i)
      if (i % 3 != 0) frames[i].hand_to = static_cast<std::uint8_t>(i % 3);
    shards[0]->release(frames);
    std::array<std::vector<RxFrame>, 3> kept;
    for (std::size_t shard = 1; shard < 3; ++shard) {
      std::array<RxFrame, 64> got;
      const std::size_t count = shards[shard]->receive(got);
      EXPECT_EQ(count, 21U);
      for (RxFrame& frame : std::span(got).first(count)) frame.kept = true;
      shards[shard]->release(std::span(got).first(count));
      kept[shard].assign(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(count));
    }
    for (std::size_t shard = 1; shard < 3; ++shard) {
      for (RxFrame& frame : kept[shard]) frame.kept = false;
      std::reverse(kept[shard].begin(), kept[shard].end());
      shards[shard]->release(kept[shard]);
    }
    EXPECT_TRUE(has_none(0));
  }
  EXPECT_EQ(devices[0]->counters().tx_ring_full, 0U);
  EXPECT_EQ(shards[0]->counters().rx_mailbox_full, 0U);
}

// A shard that does not empty its mailbox does not use up another's memory.
TEST_F(Shards, HandedOverFramesAreLimited) {
  const std::size_t most = kMostHandedOver < kFrames / 4 ? kMostHandedOver : kFrames / 4;
  for (std::uint32_t i = 0; i < most + 10; ++i) {
    arrive(0, i);
    RxFrame frame = receive_one(0);
    hand(0, 1, frame);
  }
  const std::uint64_t dropped = shards[0]->counters().rx_mailbox_full;
  EXPECT_GT(dropped, 9U);
  test::expect_it_receives_with_all_kept(*shards[0], [&] { arrive(0); });
  std::size_t taken = 0;
  for (RxFrame frame; shards[1]->receive(std::span(&frame, 1)) == 1; ++taken) release(1, frame);
  EXPECT_EQ(taken, most + 10 - dropped);
  EXPECT_TRUE(has_none(0));
  arrive(0);
  RxFrame frame = receive_one(0);
  hand(0, 1, frame);
  EXPECT_EQ(receive_one(1).port, 0);
}

// The shard that ends first takes nothing from the others.
TEST_F(Shards, TheQueuesEndTogether) {
  const auto bytes = arrive(0);
  RxFrame frame = receive_one(0);
  hand(0, 1, frame);
  shards[0].reset();
  RxFrame handed = receive_one(1);
  EXPECT_EQ(flatten(handed), bytes);
  release(1, handed);
}

// Three threads hand each other every frame.
TEST_F(Shards, ThreadsHandEachOtherFrames) {
  constexpr std::uint32_t kEach = 20'000;
  std::atomic<std::uint32_t> received{0};
  std::atomic<std::uint32_t> dropped{0};
  std::vector<std::thread> threads;
  for (std::size_t shard = 0; shard < 3; ++shard) {
    threads.emplace_back([&, shard] {
      std::uint32_t sent = 0;
      std::uint32_t own = 0;
      while (received.load() + dropped.load() < 3 * kEach) {
        if (sent < kEach) {
          SentFrame frame(sent, 100, 0);
          sent += static_cast<std::uint32_t>(devices[shard]->transmit({&frame.frame(), 1}));
        }
        std::array<RxFrame, 8> frames;
        const std::size_t count = shards[shard]->receive(frames);
        std::uint32_t here = 0;
        std::uint32_t leaving = 0;
        for (RxFrame& frame : std::span(frames).first(count)) {
          ASSERT_EQ(frame.head.size(), 100U);
          if (frame.port == shard && ++own % 3 != 0) {
            frame.hand_to = static_cast<std::uint8_t>((shard + own % 3) % 3);
            ++leaving;
          } else {
            ++here;
          }
        }
        const std::uint64_t full = shards[shard]->counters().rx_mailbox_full;
        shards[shard]->release(std::span(frames).first(count));
        received += here;
        dropped += static_cast<std::uint32_t>(shards[shard]->counters().rx_mailbox_full - full);
        if (leaving + here == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(received + dropped, 3 * kEach);
}

}  // namespace
}  // namespace ztcp::link
