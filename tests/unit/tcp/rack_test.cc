// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/rack.h"

#include <array>
#include <chrono>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;
using test::kRoundMss;

// Ten segments 10 us apart on a path of 1 ms.
class RackTest : public testing::Test {
 protected:
  RackTest() : board(ring), rtt({200ms, 5ms, 2s}) {
    board.reset(SeqNum(0));
    rtt.on_sample(start, 1ms);
    for (std::uint32_t i = 0; i < 10; ++i)
      board.push(SeqNum(i * kRoundMss), kRoundMss, start + i * 10us);
  }
  // The peer reports segment i, one round trip after it was sent.
  void sack(std::uint32_t i) {
    Delivered delivered;
    board.sack(SeqNum(i * kRoundMss), SeqNum((i + 1) * kRoundMss), kRoundMss, delivered);
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

// RFC 8985 section 6.2 step 5: not before the reordering window (a quarter of the minimum RTT) has
// passed since a later segment could have been overtaken.
TEST_F(RackTest, WaitsAQuarterRoundTripForTheFirstHole) {
  sack(1);
  EXPECT_EQ(detect(arrival(1)), 0U);
  EXPECT_EQ(next, start + 1ms + 250us);
  EXPECT_EQ(detect(next), kRoundMss);
  EXPECT_TRUE(board[0].is(SentRecord::kLost));
  EXPECT_EQ(next, kNever);
}

// Section 6.2 step 4: three segments SACKed and no reordering seen so far: no window.
TEST_F(RackTest, ThreeDuplicatesNeedNoReorderingWindow) {
  sack(1);
  sack(2);
  sack(3);
  EXPECT_EQ(detect(arrival(3)), kRoundMss);
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
  rack.on_dsack(SeqNum(10 * kRoundMss));
  rack.on_dsack(SeqNum(10 * kRoundMss));
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 500us);
  rack.on_progress(SeqNum(10 * kRoundMss));
  rack.on_dsack(SeqNum(20 * kRoundMss));
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 750us);
  for (int i = 0; i < 16; ++i) rack.on_recovery_end();
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 250us);
}

TEST_F(RackTest, RoundOfADuplicateReportEndsThoughNumbersGoHalfRound) {
  rack.note_reordering();
  rack.on_dsack(SeqNum(10 * kRoundMss));
  for (std::uint32_t una = 0; una < 0x90000000; una += 0x10000000) rack.on_progress(SeqNum(una));
  rack.on_dsack(SeqNum(0x90001000));
  EXPECT_EQ(rack.reordering_window(true, 4, rtt), 750us);
}

TEST_F(RackTest, FindsALostRetransmission) {
  for (std::uint32_t i = 1; i < 4; ++i) sack(i);
  detect(arrival(3));
  const TimePoint again = arrival(3);
  board.mark_retransmitted(0, again);
  EXPECT_EQ(detect(again), 0U);
  // New data sent after the retransmission arrives, the retransmission does not.
  board.push(SeqNum(10 * kRoundMss), kRoundMss, again + 10us);
  Delivered delivered;
  board.sack(SeqNum(10 * kRoundMss), SeqNum(11 * kRoundMss), kRoundMss, delivered);
  rack.on_delivered(again + 1010us, delivered, false, rtt);
  // Segments 4 to 9 were sent before it, too.
  EXPECT_EQ(detect(again + 1010us, /*in_recovery=*/true), 7 * kRoundMss);
}

// Section 6.2 step 2: an ACK earlier than any round trip answers the original.
TEST_F(RackTest, IgnoresAnAckTooEarlyForTheRetransmission) {
  board.mark_lost(0);
  const TimePoint again = start + 1ms;
  board.mark_retransmitted(0, again);
  Delivered delivered;
  board.acknowledge(SeqNum(kRoundMss), kRoundMss, delivered);
  rack.on_delivered(again + 10us, delivered, false, rtt);
  EXPECT_EQ(detect(again + 10us), 0U);
  EXPECT_EQ(next, kNever) << "nothing is known delivered";
}

// After any history of deliveries, losses and retransmissions, exactly those segments are lost that
// section 6.2 finds by checking each record.
TEST_F(RackTest, FindsTheSameLossesAsAFullScan) {
  std::mt19937 random(7);
  std::vector<SentRecord> many(256);
  for (int round = 0; round < 300; ++round) {
    SackScoreboard flight(many);
    flight.reset(SeqNum(0xfffe0000));
    Rack watch;
    SeqNum una(0xfffe0000);
    SeqNum sent = una;
    TimePoint now = start;
    TimePoint newest{};
    SeqNum newest_end;
    Duration newest_rtt{};
    for (int step = 0; step < 200; ++step) {
      now += Duration(random() % 3 * 50'000);
      for (auto n = random() % 6; n > 0 && !flight.full(); --n) {
        flight.push(sent, kRoundMss, now, random() % 8 == 0 ? SentRecord::kRetransmitted : 0);
        sent = sent + kRoundMss;
      }
      while (flight.lost_bytes() > 0 && random() % 4 != 0)
        flight.mark_retransmitted(flight.first_lost(), now);
      if (flight.empty()) continue;
      Delivered delivered;
      if (random() % 6 == 0) {
        una = una + static_cast<std::uint32_t>(random() % 4) * kRoundMss / 2;
        if (una.after(sent)) una = sent;
        flight.acknowledge(una, kRoundMss, delivered);
      }
      const std::uint32_t span = bytes_between(una, sent) / kRoundMss;
      for (int block = 0; block < 3 && span > 0; ++block) {
        const SeqNum begin = una + static_cast<std::uint32_t>(random() % span) * kRoundMss;
        const SeqNum end =
            earlier(begin + static_cast<std::uint32_t>(1 + random() % 5) * kRoundMss, sent);
        flight.sack(begin, end, kRoundMss, delivered);
      }
      if (random() % 50 == 0) flight.forget_losses();
      if (random() % 50 == 0) flight.forget_sacks();
      watch.on_delivered(now, delivered, false, rtt);
      if (delivered.any &&
          !(delivered.newest_retransmitted && now - delivered.newest_sent < rtt.min_rtt())) {
        newest_rtt = now - delivered.newest_sent;
        if (newest == TimePoint{} || delivered.newest_sent > newest ||
            (delivered.newest_sent == newest && delivered.newest_end.after(newest_end))) {
          newest = delivered.newest_sent;
          newest_end = delivered.newest_end;
        }
      }
      if (newest == TimePoint{}) continue;
      const bool in_recovery = random() % 2 == 0;
      const TimePoint overdue =
          now - newest_rtt - watch.reordering_window(in_recovery, flight.sacked_segments(), rtt);
      std::vector<std::uint32_t> expected;
      TimePoint expected_next = kNever;
      for (std::uint32_t i = 0; i < flight.size(); ++i) {
        const SentRecord& r = flight[i];
        const bool after = r.sent > newest || (r.sent == newest && r.end().after(newest_end));
        if (after || r.is(SentRecord::kSacked) || r.is(SentRecord::kLost)) continue;
        if (r.sent <= overdue)
          expected.push_back(i);
        else
          expected_next = std::min(expected_next, now + (r.sent - overdue));
      }
      std::vector<std::uint8_t> before;
      for (std::uint32_t i = 0; i < flight.size(); ++i) before.push_back(flight[i].flags);
      std::uint32_t lost = 0;
      EXPECT_EQ(watch.detect_loss(now, in_recovery, rtt, flight, lost), expected_next);
      std::vector<std::uint32_t> found;
      for (std::uint32_t i = 0; i < flight.size(); ++i)
        if (flight[i].flags != before[i]) found.push_back(i);
      ASSERT_EQ(found, expected);
      ASSERT_TRUE(flight.is_consistent());
    }
  }
}

// Section 6.3.
TEST_F(RackTest, TimeoutMarksTheFirstAndTheOverdueSegments) {
  sack(5);
  rack.mark_losses_on_rto(start + 1035us, rtt, board);
  EXPECT_TRUE(board[0].is(SentRecord::kLost));
  EXPECT_TRUE(board[3].is(SentRecord::kLost));
  EXPECT_FALSE(board[4].is(SentRecord::kLost)) << "its time is not up";
  EXPECT_FALSE(board[5].is(SentRecord::kLost)) << "SACKed: survives the RTO";
}

}  // namespace
}  // namespace ztcp::tcp
