// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Timers of the sending half against a hand-driven peer: when they must not fire, and the frames
// they must cause.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"
#include "tests/unit/tcp/sending.h"

namespace ztcp::tcp::test {
namespace {

class Timeout : public testing::Test {
 protected:
  Timeout() : peer(make_config()) { peer.open(); }
  static StackConfig make_config() {
    StackConfig config = test_config();
    config.tcp.pacing = false;
    return config;
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * kMss; }
  // `rounds` segments, each acknowledged after exactly `round_trip`.
  void settle(Duration round_trip, std::uint32_t rounds = 40) {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      peer.write(kMss);
      ASSERT_EQ(peer.collect().size(), 1U);
      peer.advance(round_trip);
      peer.ack(seq(++base));
      peer.collect();
    }
  }
  const Counters& counters() const { return peer.stack.counters(); }

  Peer peer;
  std::uint32_t base = 0;
};

// RFC 6298 (2.3): the variance counts as at least a clock's granularity; otherwise a path with
// constant round trips has a timeout of one round trip.
TEST_F(Timeout, SteadyPathLeavesRoomForALateAnswer) {
  settle(20ms);
  peer.write(kMss);
  peer.collect();
  peer.pass(23ms);
  EXPECT_EQ(counters().rto_fired, 0U);
  peer.ack(seq(base + 1));
  EXPECT_TRUE(peer.collect().empty());
}

// A lost segment's answer comes a round trip after it was sent again, two after the first time.
TEST_F(Timeout, RepairOnALongPathIsGivenItsRoundTrip) {
  settle(20ms);
  peer.write(10 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.pass(20ms);
  peer.ack(seq(base), {{seq(base + 1), seq(base + 10)}});
  const auto repeat = bulk(peer.collect());
  ASSERT_EQ(repeat.size(), 1U);
  EXPECT_EQ(repeat[0].seq, seq(base));
  peer.pass(20ms);
  EXPECT_EQ(counters().rto_fired, 0U);
  peer.ack(seq(base + 10));
  EXPECT_EQ(counters().spurious_recoveries, 0U);
  EXPECT_EQ(counters().tx_retransmitted_bytes, kMss);
}

// RFC 8985 section 7.2: a probe that would come after the timeout replaces it.
TEST_F(Timeout, TailIsProbedOnALongPathToo) {
  settle(20ms);
  peer.write(2 * kMss);
  ASSERT_EQ(peer.collect().size(), 2U);
  ASSERT_FALSE(peer.wait().empty());
  EXPECT_EQ(counters().tlp_fired, 1U);
  EXPECT_EQ(counters().rto_fired, 0U);
}

// RFC 6298 (5.4): regardless of other data in flight.
TEST_F(Timeout, FirstSegmentLeavesAtOnce) {
  settle(1ms);
  peer.write(kMss);
  peer.collect();
  for (peer.pass(200us); counters().rto_fired == 0; peer.pass(200us)) {
    peer.write(100);
    ASSERT_EQ(peer.collect().size(), 1U);
  }
  const auto repeat = bulk(peer.collect());
  ASSERT_EQ(repeat.size(), 1U);
  EXPECT_EQ(repeat[0].seq, seq(base));
}

// The answer was lost, not the segment: the echo of the original tells nothing of the path.
TEST_F(Timeout, LostAnswerIsNotALongRoundTrip) {
  settle(1ms);
  peer.write(kMss);
  peer.collect();
  const std::uint32_t original = peer.last_ts;
  for (int i = 0; i < 6; ++i) peer.wait();
  ASSERT_GT(counters().rto_fired, 2U);
  peer.advance(1ms);
  Seg late{.seq = peer.peer_nxt(), .ack = seq(base + 1)};
  late.options.timestamps = wire::Timestamps{peer.timestamp(), original};
  late.options.sack[late.options.sack_count++] = {seq(base), seq(base + 1)};
  peer.send(late);
  peer.write(kMss);
  peer.collect();
  const TimePoint sent = peer.now;
  const std::uint64_t before = counters().rto_fired;
  while (counters().rto_fired == before) peer.wait();
  EXPECT_LT(peer.now - sent, 20ms);
}

// All answers were lost: the second segment was sent once, but its answer waited for the repeat.
TEST_F(Timeout, SegmentsAnsweredWithARepeatAreNoSample) {
  settle(1ms);
  peer.write(3 * kMss);
  ASSERT_EQ(peer.collect().size(), 3U);
  for (int i = 0; i < 6; ++i) peer.wait();
  ASSERT_GT(counters().rto_fired, 2U);
  peer.advance(1ms);
  peer.ack(seq(base + 3));
  peer.write(kMss);
  peer.collect();
  const TimePoint sent = peer.now;
  const std::uint64_t before = counters().rto_fired;
  while (counters().rto_fired == before) peer.wait();
  EXPECT_LT(peer.now - sent, 20ms);
}

// RFC 1122 section 4.2.2.16: a window that shrinks to zero is probed, and a peer that answers is
// not given up (RFC 9293 section 3.8.6.1).
TEST_F(Timeout, PeerThatShrinksItsWindowAndAnswersIsNotGivenUp) {
  settle(1ms);
  peer.write(2 * kMss);
  ASSERT_EQ(peer.collect().size(), 2U);
  int repeats = 0;
  while (peer.now < at(60s)) {
    ASSERT_TRUE(peer.fire());
    for (const Seg& seg : peer.collect()) {
      ++repeats;
      peer.send({.seq = peer.peer_nxt(), .ack = seq(base), .window = 0});
      (void)seg;
    }
    ASSERT_FALSE(peer.user.failed);
  }
  EXPECT_LT(repeats, 100);
  peer.send({.seq = peer.peer_nxt(), .ack = seq(base)});
  peer.collect();
  ASSERT_FALSE(peer.wait().empty()) << "and given time when the window opens";
  peer.ack(seq(base + 2));
  EXPECT_EQ(peer.user.acked, (base + 2) * kMss);
  EXPECT_FALSE(peer.user.failed);
}

// For short user timeouts, too: only an unanswered probe counts.
class ShortUserTimeout : public testing::TestWithParam<Duration> {
 protected:
  ShortUserTimeout() : peer(make_config()) { peer.open(); }
  static StackConfig make_config() {
    StackConfig config = test_config();
    config.tcp.user_timeout = GetParam();
    config.tcp.keepalive_idle = 1h;  // Otherwise keepalives would get answers.
    return config;
  }
  // Answers every frame of the Stack, for `span`.
  void keep_shut(std::uint32_t ack, Duration span) {
    const TimePoint end = peer.now + span;
    while (peer.now < end) {
      ASSERT_TRUE(peer.fire());
      ASSERT_FALSE(peer.user.failed) << in_ms(peer.now - (end - span)) << " ms";
      if (peer.collect().empty()) continue;
      peer.advance(1ms);
      peer.send({.seq = peer.peer_nxt(), .ack = ack, .window = 0});
    }
  }
  // How long the Stack probes a peer that is gone, and how often.
  Duration fall_silent(int& asked) {
    TimePoint first{};
    while (!peer.user.failed) {
      EXPECT_TRUE(peer.fire());
      if (peer.collect().empty()) continue;
      if (asked++ == 0) first = peer.now;
    }
    return peer.now - first;
  }

  Peer peer;
};

TEST_P(ShortUserTimeout, ClosedWindowOfAPeerThatAnswersIsTolerated) {
  peer.send({.seq = peer.peer_nxt(), .ack = peer.first(), .window = 0});
  peer.write(kMss);
  keep_shut(peer.first(), 60s);
  ASSERT_FALSE(peer.user.failed);
  int asked = 0;
  EXPECT_NEAR(in_ms(fall_silent(asked)), in_ms(GetParam()), 2);
  EXPECT_GE(asked, 3) << "a lost answer is no death";
}

TEST_P(ShortUserTimeout, WindowClosedOverDataInFlightIsTolerated) {
  peer.ack(peer.first());
  peer.write(2 * kMss);
  ASSERT_EQ(peer.collect().size(), 2U);
  peer.advance(1ms);
  peer.send({.seq = peer.peer_nxt(), .ack = peer.first(), .window = 0});
  keep_shut(peer.first(), 60s);
  ASSERT_FALSE(peer.user.failed);
  int asked = 0;
  EXPECT_NEAR(in_ms(fall_silent(asked)), in_ms(GetParam()), 2);
  EXPECT_GE(asked, 3);
}

INSTANTIATE_TEST_SUITE_P(UserTimeouts, ShortUserTimeout,
                         testing::Values(100ms, 500ms, 1900ms, 2000ms, 3000ms, 8000ms));

// Section 3.8.6.1 holds while a user waits. After close() nobody does: a peer that keeps its window
// closed must not keep the slot.
TEST_F(Timeout, ClosedWindowDoesNotKeepAClosedConnection) {
  settle(1ms);
  peer.send({.seq = peer.peer_nxt(), .ack = seq(base), .window = 0});
  peer.write(kMss);
  peer.user.stream->close();
  const TimePoint begin = peer.now;
  bool reset = false;
  while (!reset && peer.now < begin + 60s) {
    ASSERT_TRUE(peer.fire());
    for (const Seg& seg : peer.collect()) {
      reset = reset || seg.flags.has(wire::kRst);
      if (!reset) peer.send({.seq = peer.peer_nxt(), .ack = seq(base), .window = 0});
    }
  }
  EXPECT_TRUE(reset);
  EXPECT_NEAR(in_ms(peer.now - begin), in_ms(peer.config.tcp.user_timeout), 2100);
  EXPECT_EQ(peer.stack.next_deadline(), kNever);
}

// A user asks for the state inside its failure event.
TEST_F(Timeout, AFailedConnectionReportsItsHealth) {
  settle(20ms);
  const TimePoint heard = peer.now;
  peer.write(3 * kMss);
  peer.collect();
  while (!peer.user.failed) {
    ASSERT_TRUE(peer.fire());
    peer.collect();
  }
  const StreamHealth& health = peer.user.health;
  EXPECT_EQ(health.heard, heard);
  EXPECT_NEAR(in_ms(health.srtt), 20, 1);
  EXPECT_EQ(health.unacked_bytes, 3 * kMss);
  EXPECT_EQ(health.retransmitted_bytes, counters().tx_retransmitted_bytes);
  EXPECT_EQ(health.timeouts, counters().rto_fired);
  EXPECT_GT(health.timeouts, 3U);
  EXPECT_GT(health.cwnd_bytes, 0U);
}

// RFC 8985 section 7.4.2, case 2: a peer without D-SACK that received the segment twice.
TEST_F(Timeout, NeedlessProbeToAPeerWithoutDsackIsNoLoss) {
  settle(1ms);
  peer.write(2 * kMss);
  peer.collect();
  ASSERT_EQ(peer.wait().size(), 1U);
  ASSERT_EQ(counters().tlp_fired, 1U);
  peer.ack(seq(base + 2));  // The originals.
  peer.ack(seq(base + 2));  // The probe.
  base += 2;
  settle(1ms, 1);
  peer.write(20 * kMss);
  EXPECT_EQ(peer.collect().size(), 10U) << "the initial window, not seven tenths of it";
}

// RFC 8985 section 7.2: only an ACK that acknowledges something restarts the probe's timer.
TEST_F(Timeout, AcksOfNothingDoNotDelayTheTailProbe) {
  settle(1ms);
  peer.write(2 * kMss);
  ASSERT_EQ(peer.collect().size(), 2U);
  const TimePoint sent = peer.now;
  std::uint16_t window = 60'000;
  while (counters().tlp_fired == 0 && counters().rto_fired == 0) {
    peer.pass(300us);
    (void)peer.collect();
    peer.send({.seq = peer.peer_nxt(), .ack = seq(base), .window = ++window});
  }
  EXPECT_EQ(counters().rto_fired, 0U);
  EXPECT_LT(in_ms(peer.now - sent), 4) << "twice the round trip of 1 ms, and a little";
}

}  // namespace
}  // namespace ztcp::tcp::test
