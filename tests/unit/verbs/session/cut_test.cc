// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/cut.h"

#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::verbs {
namespace {

std::uint64_t sum(const Cut& cut) {
  return std::accumulate(cut.begin(), cut.end(), std::uint64_t{0});
}

TEST(CutTest, AMessageGoesEvenlyOverEqualsAndInLines) {
  const std::vector<Share> equal(3, Share{.weight = 7});
  const Cut got = cut(100'000, equal);
  EXPECT_EQ(got, (Cut{33'408, 33'408, 33'184}));
}

TEST(CutTest, FasterRailsGetMore) {
  const std::vector<Share> shares{{.weight = 25'000}, {.weight = 0}, {.weight = 75'000}};
  EXPECT_EQ(cut(1 << 20, shares), (Cut{1 << 18, 0, 3 << 18}));
}

TEST(CutTest, QueuePairWithALongBacklogGetsNothing) {
  const std::vector<Share> shares{{.backlog_bytes = 1 << 20, .weight = 1}, {.weight = 1}};
  EXPECT_EQ(cut(1 << 19, shares), (Cut{0, 1 << 19}));
  EXPECT_EQ(cut(2 << 20, shares), (Cut{1 << 19, 3 << 19}));
}

TEST(CutTest, TheOnlyOneTakesItAll) {
  const std::vector<Share> shares{{.weight = 0}, {.backlog_bytes = 1 << 30, .weight = 9}};
  EXPECT_EQ(cut(100, shares)[1], 100U);
  EXPECT_EQ(choose(100, shares, 1), 1U);
}

TEST(CutTest, SmallMessagesGoWhereTheyAreThroughFirst) {
  std::vector<Share> shares{{.weight = 100}, {.weight = 100}, {.weight = 100}};
  EXPECT_EQ(choose(8, shares, 0), 1U);
  EXPECT_EQ(choose(8, shares, 1), 2U);
  EXPECT_EQ(choose(8, shares, 2), 0U);
  shares[2].backlog_bytes = 1;
  EXPECT_EQ(choose(8, shares, 1), 0U);
  shares[1].weight = 200;
  EXPECT_EQ(choose(8, shares, 1), 1U);
}

TEST(CutTest, EveryByteIsCutOnceAndAtLineBounds) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 20'000; ++n) {
    std::vector<Share> shares(1 + random() % kMaxQueuePairs);
    for (Share& share : shares)
      share = {random() % (1U << random() % 31), static_cast<std::uint32_t>(random() % 800'000)};
    shares[random() % shares.size()].weight = 1;
    const std::uint64_t size = random() % (1U << random() % 31);
    const Cut got = cut(size, shares);
    ASSERT_EQ(sum(got), size);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] == 0) continue;
      ASSERT_LT(i, shares.size());
      ASSERT_NE(shares[i].weight, 0U);
      end += got[i];
      ASSERT_TRUE(end == size || end % kLineBytes == 0) << end;
    }
  }
}

// With messages in flight, as NCCL always has: rails that say 100 and 100, and are 100 and 20.
TEST(CutTest, ARailThatIsSlowerThanItSaysIsGivenWhatItCarries) {
  constexpr std::uint64_t kMessage = 1 << 20;
  std::vector<Share> shares(2, Share{.weight = 100});
  std::array<double, 2> carried{};
  const std::array<double, 2> rates{100, 20};
  for (int n = 0; n < 1000; ++n) {
    const Cut got = cut(kMessage, shares);
    for (std::size_t i = 0; i < 2; ++i) shares[i].backlog_bytes += got[i];
    // Until four messages are outstanding.
    while (shares[0].backlog_bytes + shares[1].backlog_bytes > 3 * kMessage)
      for (std::size_t i = 0; i < 2; ++i) {
        const auto done = std::min(shares[i].backlog_bytes, static_cast<std::uint64_t>(rates[i]));
        shares[i].backlog_bytes -= done;
        carried[i] += static_cast<double>(done);
      }
  }
  EXPECT_NEAR(carried[1] / (carried[0] + carried[1]), 20.0 / 120, 0.01);
}

}  // namespace
}  // namespace ztcp::verbs
