// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/rx_placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::sockets {
namespace {

constexpr std::uint32_t kFirst = 8200;  // The kernel's number of the first queue.

// A NIC, whose driver may report more queues than it has, and its peers, which redial after each
// refusal.
class RxPlacementTest : public testing::Test {
 protected:
  void make(std::size_t told, std::uint32_t seed) {
    placement = std::make_unique<RxPlacement>(told);
    random.seed(seed);
    flows.assign(told, 0);
    refusals = 0;
  }
  std::uint32_t any_of(std::size_t queues) {
    return std::uniform_int_distribution<std::uint32_t>(
        0, static_cast<std::uint32_t>(queues) - 1)(random);
  }
  // Returns how often the flow was refused. `hash`: gives the queue for the next port.
  std::uint32_t dial(const std::function<std::uint32_t()>& hash) {
    for (std::uint32_t tries = 1;; ++tries) {
      const std::uint32_t queue = hash();
      if (!placement->take(kFirst + queue, tries)) continue;
      ++flows[queue];
      refusals += tries - 1;
      return tries - 1;
    }
  }
  void end(std::uint32_t queue) {
    placement->give_back(kFirst + queue);
    --flows[queue];
  }
  std::uint32_t most() const { return std::ranges::max(flows); }
  std::uint32_t least() const { return std::ranges::min(flows); }

  std::unique_ptr<RxPlacement> placement;
  std::mt19937 random;
  std::vector<std::uint32_t> flows;  // By queue.
  std::uint32_t refusals = 0;
};

TEST_F(RxPlacementTest, SpreadsFlowsOverAllQueues) {
  for (const std::size_t queues : {2U, 4U, 8U, 16U}) {
    double most_placed = 0;
    double most_alone = 0;
    constexpr std::uint32_t kSeeds = 200;
    for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
      make(queues, seed);
      std::vector<std::uint32_t> alone(queues);
      for (std::size_t flow = 0; flow < 2 * queues; ++flow) {
        ASSERT_LE(dial([&] { return any_of(queues); }), RxPlacement::kMostRefusals);
        ++alone[any_of(queues)];
      }
      most_placed += most();
      most_alone += std::ranges::max(alone);
    }
    // Two flows for each queue are ideal.
    EXPECT_LT(most_placed / kSeeds - 2, 0.35 * (most_alone / kSeeds - 2)) << queues << " queues";
    EXPECT_LT(most_placed / kSeeds, 3.0) << queues << " queues";
  }
}

TEST_F(RxPlacementTest, RefusesAFlowIfAnotherQueueServesFewer) {
  make(2, 1);
  EXPECT_TRUE(placement->take(kFirst, 1));
  EXPECT_FALSE(placement->take(kFirst, 1)) << "the other queue exists, though no flow used it yet";
  EXPECT_TRUE(placement->take(kFirst + 1, 2));
  EXPECT_TRUE(placement->take(kFirst, 1)) << "no queue has fewer flows";
  EXPECT_FALSE(placement->take(kFirst, 1));
}

// A peer may state each time that it is its first try.
TEST_F(RxPlacementTest, RefusedFlowsAreNotCounted) {
  make(2, 1);
  ASSERT_TRUE(placement->take(kFirst, 1));
  for (int again = 0; again < 100; ++again) ASSERT_FALSE(placement->take(kFirst, 1));
  EXPECT_TRUE(placement->take(kFirst + 1, 1));
  EXPECT_TRUE(placement->take(kFirst, 1));
}

TEST_F(RxPlacementTest, TakesAFlowOnAnyQueueAfterTheLastRefusal) {
  make(4, 1);
  EXPECT_EQ(dial([] { return 0; }), 0U);
  EXPECT_EQ(dial([] { return 0; }), RxPlacement::kMostRefusals);
}

TEST_F(RxPlacementTest, EndedFlowsAreNoLongerCounted) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    make(4, seed);
    for (int flow = 0; flow < 400; ++flow) {
      if (flow >= 16) {  // One flow ends for each new one, on any queue.
        std::uint32_t queue = any_of(4);
        while (flows[queue] == 0) queue = any_of(4);
        end(queue);
      }
      dial([&] { return any_of(4); });
    }
    // Ended flows leave the queues uneven, and new flows even them out. By chance alone the
    // difference would be 4 on average, and above 8 for some seeds.
    EXPECT_LE(most() - least(), 6U) << seed;
    for (std::uint32_t queue = 0; queue < 4; ++queue)
      while (flows[queue] != 0) end(queue);
    for (std::uint32_t queue = 0; queue < 4; ++queue)
      EXPECT_TRUE(placement->take(kFirst + queue, 1)) << "all queues are free again";
  }
}

TEST_F(RxPlacementTest, AResumedFlowIsCountedOnItsQueue) {
  make(2, 1);
  placement->take_back(kFirst);
  placement->take_back(kFirst);
  EXPECT_FALSE(placement->take(kFirst, 1));
  placement->give_back(kFirst);
  placement->give_back(kFirst);
  EXPECT_TRUE(placement->take(kFirst, 1));
}

// A bond reports 16 queues, and its NICs have 4.
TEST_F(RxPlacementTest, SoonIgnoresQueuesThatNoFlowReaches) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    make(16, seed);
    for (int flow = 0; flow < 12; ++flow) dial([&] { return any_of(4); });
    flows.resize(4);
    const std::uint32_t before = refusals;
    EXPECT_LE(before, 12U * RxPlacement::kMostRefusals);
    for (int flow = 0; flow < 40; ++flow) dial([&] { return any_of(4); });
    // Two or three of four tries reach a queue with the fewest flows, as on a NIC that has four.
    EXPECT_LE(refusals - before, 40U * 3) << seed;
    EXPECT_LE(most() - least(), 4U) << seed;
  }
}

// Such as a tunnel's hash, or a hash of addresses alone.
TEST_F(RxPlacementTest, StopsRefusingIfPortsDoNotChangeTheQueue) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    make(8, seed);
    for (int flow = 0; flow < 200; ++flow) {
      const std::uint32_t host = any_of(3);
      dial([&] { return host; });
    }
    EXPECT_LE(refusals, 150U) << seed;
    EXPECT_EQ(dial([] { return 0; }), 0U);
  }
}

// After each reset a driver has new numbers for the same queues.
TEST_F(RxPlacementTest, CountsNoMoreQueuesThanItHasMemoryFor) {
  make(4, 1);
  for (std::uint32_t queue = 0; queue < 1000; ++queue) placement->take_back(kFirst + queue);
  for (std::uint32_t queue = 0; queue < 1000; ++queue) placement->give_back(kFirst + queue);
  EXPECT_TRUE(placement->take(kFirst, 1));
  EXPECT_FALSE(placement->take(kFirst, 1));
}

TEST_F(RxPlacementTest, NotesOnceThatQueuesAreNotReported) {
  make(4, 1);
  EXPECT_TRUE(placement->note_untold());
  EXPECT_FALSE(placement->note_untold());
}

}  // namespace
}  // namespace ztcp::sockets
