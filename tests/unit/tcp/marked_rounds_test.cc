// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/marked_rounds.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

constexpr std::uint32_t kRoundBytes = 100'000;

// Round trips of kRoundBytes each. With data in flight, half of the bytes of the next round have
// been sent when one ends.
class MarkedRoundsTest : public testing::Test {
 protected:
  // True: it asks for another path.
  bool pass_round(double marked, bool is_idle = false) {
    acked_ += kRoundBytes;
    now_ += 50us;
    const auto ce_bytes = static_cast<std::uint32_t>(marked * kRoundBytes);
    if (ce_bytes == 0) return false;  // The sender calls it for marks alone.
    const SeqNum una(static_cast<std::uint32_t>(acked_));
    return rounds_.on_mark(now_, {.una = una,
                                  .nxt = is_idle ? una : una + kRoundBytes,
                                  .acked_bytes = acked_,
                                  .newly_acked_bytes = kRoundBytes,
                                  .ce_bytes = ce_bytes,
                                  .is_idle = is_idle});
  }
  int rounds_until_asked(double marked, int most, bool is_idle = false) {
    for (int i = 1; i <= most; ++i)
      if (pass_round(marked, is_idle)) return i;
    return -1;
  }

  MarkedRounds rounds_;
  TimePoint now_ = at(0s);
  std::uint64_t acked_ = 0;
};

TEST_F(MarkedRoundsTest, AsksAfterTwelveMarkedRoundsInARow) {
  EXPECT_EQ(rounds_until_asked(0.6, 100), 13) << "the first mark only begins the first round";
  EXPECT_EQ(rounds_.told_rounds(), 12U);
}

TEST_F(MarkedRoundsTest, ThreeAreEnoughWithNothingInFlight) {
  EXPECT_EQ(rounds_until_asked(0.6, 100, /*is_idle=*/true), 3);
}

TEST_F(MarkedRoundsTest, MarksOfAMinorityOfBytesAreNoReason) {
  EXPECT_EQ(rounds_until_asked(0.4, 10'000), -1);
}

TEST_F(MarkedRoundsTest, AnUnmarkedRoundBeginsAnew) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(rounds_until_asked(1, 10), -1) << i;
    pass_round(0);
    pass_round(0);
  }
}

TEST_F(MarkedRoundsTest, MovesInVainBecomeRare) {
  int moves = 0;
  for (int i = 0; i < 20'000; ++i) moves += pass_round(0.7) ? 1 : 0;
  EXPECT_GE(moves, 5);
  EXPECT_LE(moves, 11);
}

TEST_F(MarkedRoundsTest, ACalmPathMakesTheNextMoveQuickAgain) {
  EXPECT_GT(rounds_until_asked(1, 100), 0);
  EXPECT_GT(rounds_until_asked(1, 100), 20) << "the first move did not help";
  for (std::uint32_t i = 0; i < MarkedRounds::kRounds + 1; ++i) EXPECT_FALSE(pass_round(0.1));
  EXPECT_LE(rounds_until_asked(1, 100), 13);
}

TEST_F(MarkedRoundsTest, ATimeoutSuspendsItForAMinute) {
  rounds_.on_timeout(now_, 30s);
  EXPECT_EQ(rounds_until_asked(1, 1000), -1);
  now_ += 89s;
  EXPECT_FALSE(pass_round(1));
  now_ += 1s;
  EXPECT_TRUE(pass_round(1));
}

}  // namespace
}  // namespace ztcp::tcp::test
