// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/communicator_times.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// 100 messages with a peer that took so long each.
PeerTime time_of(const std::string& peer, std::uint64_t each_ns, Way way = Way::kReceive) {
  return {peer, way, 100, 100 * each_ns};
}

TEST(CommunicatorTimesTest, ConnectionsWithAPeerAreSummed) {
  CommunicatorTimes times;
  for (int i = 0; i < 2; ++i) times.add(7, time_of("a", kMs));
  times.add(7, time_of("a", kMs, Way::kSend));
  times.add(8, time_of("a", kMs));
  const auto taken = times.take(7);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].messages, 200U);
  EXPECT_EQ(taken[0].total_ns, 200 * kMs);
  EXPECT_TRUE(times.take(7).empty()) << "taken once";
  EXPECT_EQ(times.take(8).size(), 1U);
}

TEST(CommunicatorTimesTest, KeepsNoUnknownCommunicatorAndABoundedNumber) {
  CommunicatorTimes times;
  times.add(0, time_of("a", kMs));
  EXPECT_TRUE(times.take(0).empty());
  for (std::uint64_t i = 1; i <= CommunicatorTimes::kMost + 1; ++i) times.add(i, time_of("a", kMs));
  EXPECT_TRUE(times.take(CommunicatorTimes::kMost + 1).empty());
  EXPECT_EQ(times.take(CommunicatorTimes::kMost).size(), 1U);
}

TEST(StragglerTextTest, NamesTheSlowestAndHowMuchLaterItWas) {
  const std::vector<PeerTime> times = {time_of("a", kMs), time_of("b", kMs), time_of("c", kMs),
                                       time_of("gpu-07 (10.0.0.7)", 4 * kMs)};
  EXPECT_EQ(straggler_text(times),
            "receives from gpu-07 (10.0.0.7) took 4.000 ms, 3.000 ms longer than the median of 4 "
            "peers");
}

TEST(StragglerTextTest, NamesAtMostThreeTheSlowestFirst) {
  std::vector<PeerTime> times;
  for (const char* peer : {"a", "b", "c", "d", "e"}) {
    times.push_back(time_of(peer, kMs));
    times.push_back(time_of(peer, kMs, Way::kSend));
  }
  times.push_back(time_of("x", 3 * kMs));
  times.push_back(time_of("y", 9 * kMs, Way::kSend));
  times.push_back(time_of("z", 5 * kMs));
  times.push_back(time_of("w", 2 * kMs));
  const std::string text = straggler_text(times);
  EXPECT_TRUE(text.starts_with("sends to y took 9.000 ms")) << text;
  EXPECT_LT(text.find("receives from z"), text.find("receives from x")) << text;
  EXPECT_EQ(text.find("receives from w"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; 1 more")) << text;
}

TEST(StragglerTextTest, IsEmptyWhereAllAreAlikeOrTooFew) {
  EXPECT_EQ(straggler_text({}), "");
  EXPECT_EQ(straggler_text(std::vector<PeerTime>{time_of("a", kMs), time_of("b", 9 * kMs)}), "");
  EXPECT_EQ(straggler_text(std::vector<PeerTime>{time_of("a", kMs), time_of("b", kMs),
                                                 time_of("c", 3 * kMs / 2)}),
            "");
  EXPECT_EQ(straggler_text(std::vector<PeerTime>{time_of("a", 1000), time_of("b", 1000),
                                                 time_of("c", 50'000)}),
            "")
      << "microseconds are noise";
}

}  // namespace
}  // namespace ztcp::stats
