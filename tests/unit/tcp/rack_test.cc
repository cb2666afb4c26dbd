// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/rack.h"

#include <array>
#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMss = 1000;

// Ten segments 10 us apart on a path of 1 ms.
class RackTest : public testing::Test {
 protected:
  RackTest() : board(ring), rtt({200ms, 5ms, 2s}) {
    board.reset(SeqNum(0));
    rtt.on_sample(start, 1ms);
    for (std::uint32_t i = 0; i < 10; ++i) board.push(SeqNum(i * kMss), kMss, start + i * 10us);
  }
  // The peer reports segment i, one round trip after it was sent.
  void sack(std::uint32_t i) {
    Delivered delivered;
    board.sack(SeqNum(i * kMss), SeqNum((i + 1) * kMss), kMss, delivered);
    rack.on_delivered(arrival(i), delivered, /*echoes_older=*/false, rtt);
  }
  TimePoint arrival(std::uint32_t i) const { return start + i * 10us + 1ms; }
  std::uint32_t detect(TimePoint now, bool in_recovery = false) {
    std::uint32_t lost = 0;
    next = rack.detect_loss(now, in_recovery, rtt, board, lost);
    return lost;
  }

  TimePoint start{1h};
  std::array<SentRecord, 16> ring;
  SackScoreboard board;
  RttEstimator rtt;
  Rack rack;
  TimePoint next = kNever;
};

// RFC 8985 section 6.2 step 5: not before the reordering window (a quarter of the least RTT) has
// passed since a later segment could have been overtaken.
TEST_F(RackTest, WaitsAQuarterRoundTripForTheFirstHole) {
  sack(1);
  EXPECT_EQ(detect(arrival(1)), 0U);
  EXPECT_EQ(next, start + 1ms + 250us);
  EXPECT_EQ(detect(next), kMss);
  EXPECT_TRUE(board[0].is(SentRecord::kLost));
  EXPECT_EQ(next, kNever);
}

// Section 6.2 step 4: three segments SACKed and no reordering seen so far: no window.
TEST_F(RackTest, ThreeDuplicatesNeedNoPatience) {
  sack(1);
  sack(2);
  sack(3);
  EXPECT_EQ(detect(arrival(3)), kMss);
}

TEST_F(RackTest, SeenReorderingKeepsTheWindowOpen) {
  sack(2);
  sack(1);  // Late but not lost.
  EXPECT_TRUE(rack.reordering_seen());
  sack(3);
  sack(4);
  EXPECT_EQ(detect(arrival(4), /*in_recovery=*/true), 0U);
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 250us);
}

TEST_F(RackTest, DuplicateReportsWidenTheWindowOncePerRoundTrip) {
  rack.note_reordering();
  rack.on_dsack(SeqNum(0), SeqNum(10 * kMss));
  rack.on_dsack(SeqNum(0), SeqNum(10 * kMss));
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 500us);
  rack.on_dsack(SeqNum(10 * kMss), SeqNum(20 * kMss));
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 750us);
  for (int i = 0; i < 16; ++i) rack.on_recovery_end();
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 250us);
}

TEST_F(RackTest, FindsALostRetransmission) {
  for (std::uint32_t i = 1; i < 4; ++i) sack(i);
  detect(arrival(3));
  const TimePoint again = arrival(3);
  board.mark_retransmitted(0, again);
  EXPECT_EQ(detect(again), 0U);
  // New data sent after the retransmission arrives, the retransmission does not.
  board.push(SeqNum(10 * kMss), kMss, again + 10us);
  Delivered delivered;
  board.sack(SeqNum(10 * kMss), SeqNum(11 * kMss), kMss, delivered);
  rack.on_delivered(again + 1010us, delivered, false, rtt);
  // Segments 4 to 9 went out before it, too.
  EXPECT_EQ(detect(again + 1010us, /*in_recovery=*/true), 7 * kMss);
}

// Section 6.2 step 2: an ACK sooner than any round trip answers the original.
TEST_F(RackTest, IgnoresAnAckThatCameTooSoonForTheRetransmission) {
  board.mark_lost(0);
  const TimePoint again = start + 1ms;
  board.mark_retransmitted(0, again);
  Delivered delivered;
  board.acknowledge(SeqNum(kMss), kMss, delivered);
  rack.on_delivered(again + 10us, delivered, false, rtt);
  EXPECT_EQ(detect(again + 10us), 0U);
  EXPECT_EQ(next, kNever) << "nothing is known delivered";
}

// Section 6.3.
TEST_F(RackTest, TimeoutLosesTheFirstAndTheLate) {
  sack(5);
  rack.mark_losses_on_rto(start + 1035us, rtt, board);
  EXPECT_TRUE(board[0].is(SentRecord::kLost));
  EXPECT_TRUE(board[3].is(SentRecord::kLost));
  EXPECT_FALSE(board[4].is(SentRecord::kLost)) << "its time is not up";
  EXPECT_FALSE(board[5].is(SentRecord::kLost)) << "SACKed: survives the RTO";
}

}  // namespace
}  // namespace ztcp::tcp
