// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/sack_scoreboard.h"

#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;
using test::kRoundMss;

constexpr SeqNum kFirst(0xfffff000);  // Wraps after four segments and 96 bytes.

class Scoreboard : public testing::Test {
 protected:
  Scoreboard() : board(ring) { board.reset(kFirst); }
  void send(int segments) {
    for (int i = 0; i < segments; ++i) {
      const SeqNum seq = board.empty() ? next : board.back().end();
      board.push(seq, kRoundMss, now);
      next = seq + kRoundMss;
      now += 1us;
    }
  }
  static SeqNum seq(std::uint32_t segment) { return kFirst + segment * kRoundMss; }
  Delivered sack(std::uint32_t from, std::uint32_t to) {
    Delivered delivered;
    board.sack(seq(from), seq(to), kRoundMss, delivered);
    EXPECT_TRUE(board.is_consistent());
    return delivered;
  }
  Delivered acknowledge(SeqNum una) {
    Delivered delivered;
    board.acknowledge(una, kRoundMss, delivered);
    EXPECT_TRUE(board.is_consistent());
    return delivered;
  }

  std::array<SentRecord, 16> ring;
  SackScoreboard board;
  TimePoint now{1s};
  SeqNum next = kFirst;
};

TEST_F(Scoreboard, PipeExcludesSackedAndLostBytes) {
  send(10);
  EXPECT_EQ(board.in_flight_bytes(), 10 * kRoundMss);
  EXPECT_EQ(sack(4, 6).bytes, 2 * kRoundMss);
  board.mark_lost(0);
  EXPECT_EQ(board.outstanding_bytes(), 10 * kRoundMss);
  EXPECT_EQ(board.in_flight_bytes(), 7 * kRoundMss);
  board.mark_retransmitted(0, now);
  EXPECT_EQ(board.in_flight_bytes(), 8 * kRoundMss);
  EXPECT_EQ(board.lost_bytes(), 0U);
}

TEST_F(Scoreboard, BlocksCountOnceHoweverOftenRepeated) {
  send(10);
  EXPECT_EQ(sack(2, 4).bytes, 2 * kRoundMss);
  EXPECT_EQ(sack(2, 4).bytes, 0U);
  EXPECT_EQ(sack(2, 7).bytes, 3 * kRoundMss);
  EXPECT_EQ(sack(1, 8).bytes, 2 * kRoundMss);
  EXPECT_EQ(board.sacked_segments(), 7U);
  EXPECT_EQ(board.forward_ack(), seq(8));
}

TEST_F(Scoreboard, PartlyCoveredSegmentsStayInFlight) {
  send(4);
  Delivered delivered;
  board.sack(seq(1) + 1, seq(3) + 999, kRoundMss, delivered);
  EXPECT_EQ(delivered.bytes, kRoundMss);
  EXPECT_FALSE(board[1].is(SentRecord::kSacked));
  EXPECT_TRUE(board[2].is(SentRecord::kSacked));
  EXPECT_FALSE(board[3].is(SentRecord::kSacked));
}

TEST_F(Scoreboard, CumulativeAckMayEndInsideASegment) {
  send(3);
  const Delivered delivered = acknowledge(seq(1) + 300);
  EXPECT_EQ(delivered.bytes, 1300U);
  EXPECT_EQ(board.size(), 2U);
  EXPECT_EQ(board.front().seq, seq(1) + 300);
  EXPECT_EQ(board.front().length, 700);
  EXPECT_EQ(acknowledge(seq(3)).bytes, 1700U);
  EXPECT_TRUE(board.empty());
}

TEST_F(Scoreboard, SackedBytesAreNotDeliveredAgainByTheCumulativeAck) {
  send(5);
  sack(1, 5);
  EXPECT_EQ(acknowledge(seq(5)).bytes, kRoundMss);
}

TEST_F(Scoreboard, DistinguishesReorderingFromRetransmission) {
  send(6);
  EXPECT_FALSE(sack(3, 6).reordered);
  EXPECT_TRUE(sack(1, 2).reordered) << "sent once, delivered after higher numbers";
  board.mark_lost(0);
  board.mark_retransmitted(0, now);
  EXPECT_FALSE(acknowledge(seq(1)).reordered) << "a retransmission comes late by nature";
}

// Karn's rule.
TEST_F(Scoreboard, RetransmissionsGiveNoRttSample) {
  send(3);
  board.mark_lost(0);
  board.mark_retransmitted(0, now + 5ms);
  const Delivered first = acknowledge(seq(1));
  EXPECT_FALSE(first.has_rtt_sample);
  EXPECT_TRUE(first.newest_retransmitted);
  EXPECT_EQ(first.newest_sent, now + 5ms);
  const TimePoint sent = board[1].sent;
  const Delivered rest = acknowledge(seq(3));
  EXPECT_TRUE(rest.has_rtt_sample);
  EXPECT_EQ(rest.rtt_sent, sent) << "the newest of them";
}

TEST_F(Scoreboard, FindsTheOldestLossAgainAndAgain) {
  send(8);
  board.mark_lost(5);
  board.mark_lost(2);
  EXPECT_EQ(board.first_lost(), 2U);
  board.mark_retransmitted(2, now);
  EXPECT_EQ(board.first_lost(), 5U);
  acknowledge(seq(4));
  EXPECT_EQ(board.first_lost(), 1U);
  board.mark_lost(0);
  EXPECT_EQ(board.first_lost(), 0U);
  board.forget_losses();
  EXPECT_EQ(board.lost_bytes(), 0U);
  EXPECT_EQ(board.in_flight_bytes(), 4 * kRoundMss);
}

// RFC 2018 section 8: the peer may drop bytes that it reported.
TEST_F(Scoreboard, RenegedBytesAreInFlightAgain) {
  send(6);
  sack(0, 4);
  board.forget_sacks();
  EXPECT_TRUE(board.is_consistent());
  EXPECT_EQ(board.in_flight_bytes(), 6 * kRoundMss);
  EXPECT_EQ(sack(2, 4).bytes, 2 * kRoundMss) << "and may be reported again";
}

TEST_F(Scoreboard, RingGoesRound) {
  for (int round = 0; round < 100; ++round) {
    send(16);
    EXPECT_TRUE(board.full());
    sack(0, 0);
    acknowledge(board.front().seq + 5 * kRoundMss);
    EXPECT_EQ(board.space(), 5U);
    EXPECT_EQ(board.find(board.back().seq + 1), 10U);
    EXPECT_EQ(board.find(next), board.size());
    acknowledge(next);
  }
}

}  // namespace
}  // namespace ztcp::tcp
