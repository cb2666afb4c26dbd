// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/hystart.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

constexpr Duration kThresh = HyStart::kMostMinRttThresh;

// RFC 9406 section 4.2: eight samples of a round above the last round's minimum plus the threshold.
TEST(HyStart, LeavesSlowStartWhenTheRoundTripGrows) {
  HyStart hystart;
  hystart.begin(SeqNum(0));
  std::uint32_t number = 0;
  const auto round = [&](Duration rtt) {
    std::uint32_t growth = 0;
    for (int i = 0; i < 10; ++i) {
      number += 1000;
      growth += hystart.on_ack(SeqNum(number), SeqNum(number + 10'000), 1000, rtt, kThresh);
    }
    return growth;
  };
  round(1ms);
  EXPECT_EQ(round(1ms), 10'000U);
  round(1240us);
  EXPECT_FALSE(hystart.in_css()) << "the threshold is 250 us";
  round(2ms);
  EXPECT_TRUE(hystart.in_css());
  EXPECT_EQ(round(2ms), 2500U) << "a quarter of slow start";
  for (int i = 0; i < 5; ++i) round(2ms);
  EXPECT_TRUE(hystart.is_done());
}

// Peers that acknowledge once per burst. The round ends with the ACK of all that was sent when it
// began ("when windowEnd is ACKed", section 4.2).
TEST(HyStart, SeesGrowthInRoundsOfFewAcks) {
  for (const int acks : {1, 2, 7}) {
    HyStart hystart;
    hystart.begin(SeqNum(0));
    std::uint32_t number = 0;
    // All of a window is acknowledged before the next one is sent.
    const auto round = [&](Duration rtt) {
      const std::uint32_t end = number + static_cast<std::uint32_t>(acks) * 1000;
      while (number != end) {
        number += 1000;
        hystart.on_ack(SeqNum(number), SeqNum(end), 1000, rtt, kThresh);
      }
    };
    round(1ms);
    round(1ms);
    round(1200us);
    EXPECT_FALSE(hystart.in_css()) << acks;
    round(2ms);
    EXPECT_TRUE(hystart.in_css()) << acks;
    for (int i = 0; i < 5; ++i) round(2ms + i * 1ms);
    EXPECT_TRUE(hystart.is_done()) << acks;
  }
}

TEST(HyStart, ASingleSampleNeedsTwiceTheGrowth) {
  HyStart hystart;
  hystart.begin(SeqNum(1000));
  std::uint32_t number = 0;
  const auto round = [&](Duration rtt) {
    number += 1000;
    hystart.on_ack(SeqNum(number), SeqNum(number + 1000), 1000, rtt, kThresh);
  };
  round(1ms);
  round(1ms);
  round(1400us);
  EXPECT_FALSE(hystart.in_css());
  round(1ms);
  round(1600us);
  EXPECT_TRUE(hystart.in_css());
  round(1ms);
  EXPECT_FALSE(hystart.in_css()) << "it was noise";
}

// While the user is the limit no ACK is passed in, and more than half the numbers may pass.
TEST(HyStart, RoundEndsAfterNumbersThatWentHalfRound) {
  HyStart hystart;
  hystart.begin(SeqNum(0));
  std::uint32_t number = 0x90000000;
  const auto round = [&](Duration rtt) {
    for (int i = 0; i < 10; ++i) {
      number += 1000;
      hystart.on_ack(SeqNum(number), SeqNum(number + 10'000), 1000, rtt, kThresh);
    }
  };
  round(1ms);
  round(1ms);
  round(2ms);
  EXPECT_TRUE(hystart.in_css());
}

TEST(HyStart, ReturnsToSlowStartWhenTheGrowthWasNoise) {
  HyStart hystart;
  hystart.begin(SeqNum(0));
  std::uint32_t number = 0;
  for (const Duration rtt : {Duration(1ms), Duration(3ms), Duration(1ms)})
    for (int i = 0; i < 20; ++i) {
      number += 1000;
      hystart.on_ack(SeqNum(number), SeqNum(number + 20'000), 1000, rtt, kThresh);
    }
  EXPECT_FALSE(hystart.in_css());
  EXPECT_FALSE(hystart.is_done());
}

// 64 KiB of queue at any line speed; a window per round trip is the rate.
TEST(HyStart, ThresholdFollowsTheRate) {
  EXPECT_EQ(HyStart::min_rtt_thresh(1ms, 12'500'000), HyStart::kLeastMinRttThresh) << "100 Gb/s";
  EXPECT_EQ(HyStart::min_rtt_thresh(1ms, 1'250'000), 52'428ns) << "10 Gb/s";
  EXPECT_EQ(HyStart::min_rtt_thresh(1ms, 125'000), HyStart::kMostMinRttThresh) << "1 Gb/s";
  EXPECT_EQ(HyStart::min_rtt_thresh(0ms, 0), HyStart::kLeastMinRttThresh) << "nothing known";
}

TEST(HyStart, FastLineEndsSlowStartAtASmallGrowth) {
  HyStart hystart;
  hystart.begin(SeqNum(0));
  std::uint32_t number = 0;
  const auto round = [&](Duration rtt) {
    for (int i = 0; i < 10; ++i) {
      number += 1000;
      hystart.on_ack(SeqNum(number), SeqNum(number + 10'000), 1000, rtt,
                     HyStart::min_rtt_thresh(50us, 1U << 20));
    }
  };
  round(50us);
  round(50us);
  round(60us);
  EXPECT_FALSE(hystart.in_css());
  round(90us);
  EXPECT_TRUE(hystart.in_css());
}

}  // namespace
}  // namespace ztcp::tcp
