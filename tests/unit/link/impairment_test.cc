// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/impairment.h"

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

using namespace std::chrono_literals;

TEST(Impairer, WithoutSettingsFramesPassUnchanged) {
  EXPECT_FALSE(Impairment{}.any());
  Impairer impairer({}, 1);
  const TimePoint now{5s};
  const Passage p = impairer.admit(now, 1514);
  EXPECT_EQ(p.fate, Passage::Fate::kDelivered);
  EXPECT_EQ(p.copies, 1);
  EXPECT_EQ(p.at[0], now);
  EXPECT_FALSE(p.corrupted || p.mark_ecn || p.reordered);
}

TEST(Impairer, TheSameSeedGivesTheSameDecisions) {
  const Impairment all{
      .loss = 0.1, .duplicate = 0.1, .reorder = 0.1, .corrupt = 0.1, .delay = 1ms, .jitter = 1ms};
  Impairer a(all, 7);
  Impairer b(all, 7);
  Impairer other(all, 8);
  int differences = 0;
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now{i * 1us};
    const Passage x = a.admit(now, 1000);
    const Passage y = b.admit(now, 1000);
    const Passage z = other.admit(now, 1000);
    EXPECT_EQ(x.fate, y.fate);
    EXPECT_EQ(x.at, y.at);
    EXPECT_EQ(x.flipped_bit, y.flipped_bit);
    differences += x.at != z.at;
  }
  EXPECT_GT(differences, 900);
}

struct Share {
  const char* name;
  Impairment what;
  bool (*hit)(const Passage&);
};
class ImpairmentShare : public testing::TestWithParam<Share> {};

TEST_P(ImpairmentShare, IsNearItsProbability) {
  Impairer impairer(GetParam().what, 42);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += GetParam().hit(impairer.admit(TimePoint{}, 1000));
  EXPECT_NEAR(hits, 5000, 300);  // 5 %: four standard deviations are 276.
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ImpairmentShare,
    testing::Values(
        Share{"loss", {.loss = 0.05}, [](const Passage& p) { return p.copies == 0; }},
        Share{"duplicate", {.duplicate = 0.05}, [](const Passage& p) { return p.copies == 2; }},
        Share{"reorder",
              {.reorder = 0.05},
              [](const Passage& p) { return p.at[0] >= TimePoint{1ms}; }},
        Share{"corrupt", {.corrupt = 0.05}, [](const Passage& p) { return p.corrupted; }}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Impairer, FlipsOnlyBitsInsideTheFrame) {
  Impairer impairer({.corrupt = 1}, 3);
  for (int i = 0; i < 10'000; ++i) EXPECT_LT(impairer.admit(TimePoint{}, 60).flipped_bit, 46U * 8);
  EXPECT_FALSE(impairer.admit(TimePoint{}, 14).corrupted);
}

TEST(Impairer, RateSpacesFramesAndDropsBeyondItsQueue) {
  // 1000 bytes at 8 Mbit/s take 1 ms.
  Impairer impairer({.rate_bits_per_second = 8'000'000, .queue_limit_bytes = 3000}, 1);
  const TimePoint now{1s};
  EXPECT_EQ(impairer.admit(now, 1000).at[0], now + 1ms);
  EXPECT_EQ(impairer.admit(now, 1000).at[0], now + 2ms);
  EXPECT_EQ(impairer.queued_bytes(now), 2000U);
  EXPECT_EQ(impairer.admit(now, 1000).at[0], now + 3ms);
  EXPECT_EQ(impairer.admit(now, 1000).fate, Passage::Fate::kQueueFull);
  EXPECT_EQ(impairer.admit(now + 1ms, 1000).at[0], now + 4ms) << "one frame has left meanwhile";
  EXPECT_EQ(impairer.admit(now + 1s, 1000).at[0], now + 1s + 1ms) << "idle time is not saved up";
}

TEST(Impairer, SpraysFramesOverPathsInTurn) {
  Impairer impairer({.delay = 1ms, .paths = 4, .path_skew = 300us}, 1);
  const TimePoint now{1s};
  for (int round = 0; round < 2; ++round)
    for (const Duration later : {0us, 100us, 200us, 300us})
      EXPECT_EQ(impairer.admit(now, 1000).at[0], now + 1ms + later);
}

TEST(Impairer, MarksAboveTheBacklogThreshold) {
  Impairer impairer({.rate_bits_per_second = 8'000'000, .ecn_threshold_bytes = 1500}, 1);
  EXPECT_FALSE(impairer.admit(TimePoint{}, 1000).mark_ecn);
  EXPECT_FALSE(impairer.admit(TimePoint{}, 1000).mark_ecn);
  EXPECT_TRUE(impairer.admit(TimePoint{}, 1000).mark_ecn) << "2000 bytes wait";
  EXPECT_TRUE(impairer.admit(TimePoint{1s}, 1000, 1501).mark_ecn) << "bytes that wait elsewhere";
}

}  // namespace
}  // namespace ztcp::link
