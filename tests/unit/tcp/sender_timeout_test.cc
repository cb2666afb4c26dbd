// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sending against a silent hand-driven peer: timeouts, and undoing them.

#include <gtest/gtest.h>

#include "tests/unit/tcp/sending.h"
#include "transport/tcp/sender.h"

namespace ztcp::tcp::test {
namespace {

// RFC 6298 (5.5).
TEST_F(Sending, TimeoutsDouble) {
  warm_up();
  peer.write(kMss);
  peer.collect();
  std::vector<TimePoint> repeats;
  while (repeats.size() < 5) {
    ASSERT_TRUE(peer.fire());
    const std::uint64_t before = counters().rto_fired;
    if (!peer.collect().empty() && before > repeats.size()) repeats.push_back(peer.now);
  }
  for (std::size_t i = 2; i < repeats.size(); ++i)
    EXPECT_NEAR(in_ms(repeats[i] - repeats[i - 1]) * 1000,
                2000 * in_ms(repeats[i - 1] - repeats[i - 2]), 100);
}

TEST_F(Sending, SilenceEndsInTheUserTimeout) {
  warm_up();
  peer.write(kMss);
  peer.collect();
  const TimePoint start = peer.now;
  while (!peer.user.failed) {
    ASSERT_TRUE(peer.fire());
    peer.collect();
  }
  EXPECT_EQ(peer.user.failed->code, Errc::kTimedOut);
  EXPECT_NEAR(in_ms(peer.now - start), in_ms(peer.config.tcp.user_timeout), 10);
}

// RFC 3522 and RFC 4015: the originals were late, not lost, as their timestamps show.
TEST_F(Sending, SpuriousTimeoutIsUndone) {
  warm_up();
  peer.write(10 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  const std::uint32_t original = peer.last_ts;
  while (counters().rto_fired == 0) {
    ASSERT_TRUE(peer.fire());
    peer.collect();
  }
  peer.collect();
  Seg late{.seq = peer.peer_nxt(), .ack = seq(4)};
  late.options.timestamps = wire::Timestamps{peer.timestamp(), original};
  peer.send(late);
  EXPECT_EQ(counters().spurious_recoveries, 1U);
  EXPECT_TRUE(peer.collect().empty()) << "nothing is sent a second time";
  peer.write(20 * kMss);
  EXPECT_EQ(peer.collect().size(), 2U) << "the window of 10 is back, and 8 are in flight";
}

TEST_F(Sending, RealTimeoutIsNotUndone) {
  warm_up();
  peer.write(4 * kMss);
  peer.collect();
  while (counters().rto_fired == 0) {
    ASSERT_TRUE(peer.fire());
    peer.collect();
  }
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(3));
  EXPECT_EQ(counters().spurious_recoveries, 0U);
  EXPECT_FALSE(peer.collect().empty()) << "slow start repeats the rest";
}

// RFC 2018 section 8: SACKs survive the RTO ...
TEST_F(Sending, TimeoutRepeatsOnlyHoles) {
  warm_up();
  peer.write(6 * kMss);
  peer.collect();
  peer.advance(1ms);
  // Two above the hole: too few for fast recovery, and time stands still until the RTO.
  peer.ack(seq(2), {{seq(6), seq(8)}});
  std::vector<int> repeated;
  for (int i = 0; i < 40; ++i) {
    for (const int n : numbers(peer.collect())) repeated.push_back(n);
    peer.fire();
  }
  for (const int n : repeated) EXPECT_LT(n, 6) << "6 and 7 were SACKed";
}

// ... until the first segment itself was SACKed and is still not acknowledged.
TEST_F(Sending, RenegedSackIsSentAgain) {
  warm_up();
  peer.write(4 * kMss);
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(2), {{seq(3), seq(6)}});
  ASSERT_EQ(numbers(peer.collect()), std::vector<int>{2});
  peer.advance(1ms);
  peer.ack(seq(3));  // The hole is filled, and the rest was dropped.
  std::vector<int> repeated;
  for (int i = 0; i < 10 && repeated.size() < 1; ++i) {
    ASSERT_TRUE(peer.fire());
    for (const int n : numbers(bulk(peer.collect()))) repeated.push_back(n);
  }
  EXPECT_EQ(repeated.front(), 3);
  peer.advance(1ms);
  peer.ack(seq(4));
  EXPECT_EQ(numbers(peer.collect()).front(), 4);
}

TEST_F(Sending, LongPollGapRaisesTheFloor) {
  warm_up();
  peer.stack.note_poll_gap(peer.now, 50ms);
  peer.stack.note_poll_gap(peer.now, 1us);  // The poller is back.
  peer.write(kMss);
  peer.collect();
  const TimePoint sent = peer.now;
  while (counters().rto_fired == 0) ASSERT_FALSE(peer.wait().empty());
  EXPECT_GE(peer.now - sent, 200ms);
}

TEST_F(Sending, FloorFallsAfterTheLastPollGap) {
  warm_up();
  peer.stack.note_poll_gap(peer.now, 50ms);
  for (int turn = 0; turn < 3; ++turn) {
    peer.advance(1s);
    peer.stack.note_poll_gap(peer.now, 1us);
  }
  peer.write(kMss);
  peer.collect();
  const TimePoint sent = peer.now;
  while (counters().rto_fired == 0) ASSERT_FALSE(peer.wait().empty());
  EXPECT_LT(peer.now - sent, 200ms);
}

}  // namespace
}  // namespace ztcp::tcp::test
