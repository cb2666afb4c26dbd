// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How connections end, against a hand-driven peer: closed, half closed, aborted, and what comes
// for one in TIME-WAIT (RFC 9293 sections 3.6 and 3.10.4 to 3.10.7).
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

TEST(Close, WeFirst) {
  Peer peer;
  peer.open();
  peer.write(100);
  peer.user.stream->close();
  const auto out = peer.collect();
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(flags_of(out[1]), "F.");
  EXPECT_EQ(out[1].seq, peer.first() + 100);
  EXPECT_EQ(peer.stack.unfinished(), 1U);
  peer.ack(peer.first() + 101);
  EXPECT_EQ(peer.stack.unfinished(), 0U) << "FIN-WAIT-2: all was heard";
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = peer.first() + 101});
  EXPECT_EQ(peer.collect_one().ack, peer.peer_nxt() + 1);
  // TIME-WAIT answers a repeated FIN.
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = peer.first() + 101});
  EXPECT_EQ(peer.collect_one().ack, peer.peer_nxt() + 1);
  while (peer.fire()) peer.collect();
  EXPECT_NEAR(in_ms(peer.now - at(0s)), 500, 2);
  peer.send({.seq = peer.peer_nxt() + 1, .ack = peer.first() + 101});
  EXPECT_EQ(flags_of(peer.collect_one()), "R") << "forgotten";
}

TEST(Close, PeerFirst) {
  Peer peer;
  peer.open();
  peer.send({.flags = wire::kFin | wire::kAck,
             .seq = peer.peer_first(),
             .ack = peer.first(),
             .payload = pattern(10)});
  EXPECT_TRUE(peer.user.closed);
  EXPECT_EQ(peer.user.received, pattern(10));
  EXPECT_EQ(peer.collect_one().ack, peer.peer_first() + 11);
  peer.write(20);  // Our side is still open.
  EXPECT_EQ(peer.collect_one().payload.size(), 20U);
  peer.user.stream->close();
  const Seg fin = peer.collect_one();
  EXPECT_EQ(flags_of(fin), "F.");
  peer.send({.seq = peer.peer_first() + 11, .ack = fin.seq + 1});
  EXPECT_EQ(peer.stack.next_deadline(), kNever) << "LAST-ACK ends at once";
}

TEST(Close, BothAtOnce) {
  Peer peer;
  peer.open();
  peer.user.stream->close();
  const Seg fin = peer.collect_one();
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = fin.seq});
  EXPECT_EQ(peer.collect_one().ack, peer.peer_first() + 1);
  EXPECT_EQ(peer.stack.unfinished(), 1U) << "CLOSING";
  peer.send({.seq = peer.peer_first() + 1, .ack = fin.seq + 1});
  EXPECT_EQ(peer.stack.unfinished(), 0U) << "TIME-WAIT";
  while (peer.fire()) peer.collect();
  EXPECT_EQ(peer.stack.counters().tx_resets, 0U);
}

TEST(Close, FinAheadOfItsDataWaits) {
  Peer peer;
  peer.open();
  peer.send({.flags = wire::kFin | wire::kAck,
             .seq = peer.peer_first() + 100,
             .ack = peer.first(),
             .payload = pattern(50, 100)});
  EXPECT_FALSE(peer.user.closed);
  peer.send({.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(100)});
  EXPECT_EQ(peer.user.received, pattern(150));
  EXPECT_TRUE(peer.user.closed);
}

TEST(Close, LostFinIsRepeated) {
  Peer peer;
  peer.open();
  peer.user.stream->close();
  const Seg fin = peer.collect_one();
  Seg again;
  for (int i = 0; i < 5 && flags_of(again) != "F."; ++i) {
    ASSERT_TRUE(peer.fire());
    const auto segs = peer.collect();
    if (!segs.empty()) again = segs.back();
  }
  EXPECT_EQ(flags_of(again), "F.");
  EXPECT_EQ(again.seq, fin.seq);
}

TEST(Close, PeerThatNeverEndsItsSideIsForgotten) {
  Peer peer;
  peer.open();
  peer.user.stream->close();
  const Seg fin = peer.collect_one();
  peer.ack(fin.seq + 1);
  bool reset = false;
  while (peer.fire()) {
    for (const Seg& seg : peer.collect()) {
      reset = reset || flags_of(seg) == "R.";
      if (flags_of(seg) == ".") peer.ack(fin.seq + 1);  // Alive, says the keepalive.
    }
  }
  EXPECT_TRUE(reset);
  EXPECT_NEAR(in_ms(peer.now - at(0s)), in_ms(peer.config.tcp.user_timeout), 1000);
}

TEST(Close, AbortSaysSoAndForgets) {
  Peer peer;
  peer.open();
  peer.write(100);
  peer.collect();
  peer.user.stream->abort();
  const Seg reset = peer.collect_one();
  EXPECT_EQ(flags_of(reset), "R.");
  EXPECT_EQ(reset.seq, peer.first() + 100);
  EXPECT_EQ(peer.stack.next_deadline(), kNever);
}

TEST(Close, AbortFromInsideADelivery) {
  Peer peer;
  peer.open();
  peer.send({.seq = peer.peer_first() + 100, .ack = peer.first(), .payload = pattern(100)});
  peer.collect();
  peer.user.on_bytes_hook = [&] { peer.user.stream->abort(); };
  peer.send({.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(100)});
  EXPECT_EQ(peer.user.received.size(), 100U) << "nothing after the abort";
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
  EXPECT_TRUE(peer.held.empty()) << "held frames go back";
}

// SHLD-3: what nobody takes is not acknowledged; the peer learns that it was lost.
TEST(Close, DataAfterCloseIsReset) {
  Peer peer;
  peer.open();
  peer.write(100);
  peer.user.stream->close();
  ASSERT_EQ(peer.collect().size(), 2U);
  peer.ack(peer.first() + 101);
  EXPECT_TRUE(peer.collect().empty());
  peer.send_data(50, peer.first() + 101);
  const Seg reset = peer.collect_one();
  EXPECT_EQ(flags_of(reset), "R.");
  EXPECT_EQ(reset.seq, peer.first() + 101);
  EXPECT_EQ(reset.ack, peer.peer_first());
  EXPECT_TRUE(peer.user.received.empty());
  EXPECT_EQ(peer.stack.connections(), 0U);
}

// But not before the peer has what was said before: a reset would overtake what got lost.
TEST(Close, DataBeforeOurFinArrivedIsResetOnceItHas) {
  Peer peer;
  peer.open();
  peer.write(100);
  peer.user.stream->close();
  ASSERT_EQ(peer.collect().size(), 2U);
  peer.send_data(50, peer.first());
  for (const Seg& seg : peer.collect()) {
    EXPECT_FALSE(seg.flags.has(wire::kRst));
    EXPECT_EQ(seg.ack, peer.peer_first());
  }
  peer.send({.seq = peer.peer_nxt(), .ack = peer.first() + 100});
  for (const Seg& seg : peer.collect()) EXPECT_FALSE(seg.flags.has(wire::kRst));
  EXPECT_EQ(peer.stack.unfinished(), 1U) << "the FIN is not there yet";
  peer.send({.seq = peer.peer_nxt(), .ack = peer.first() + 101});
  const Seg reset = peer.collect_one();
  EXPECT_EQ(flags_of(reset), "R.");
  EXPECT_EQ(reset.seq, peer.first() + 101);
}

// Both users left with last words under way, which neither stack acknowledges: waiting for that
// would be for ever.
TEST(Close, LastWordsThatCrossEndAtOnce) {
  Peer peer;
  peer.open();
  peer.write(100);
  peer.user.stream->close();
  ASSERT_EQ(peer.collect().size(), 2U);
  peer.send({.flags = wire::kFin | wire::kAck,
             .seq = peer.peer_first(),
             .ack = peer.first(),
             .payload = pattern(16)});
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
  EXPECT_EQ(peer.stack.unfinished(), 0U);
}

TEST(Close, LastWordsThatCrossEndAtTheFinBehindThem) {
  Peer peer;
  peer.open();
  peer.user.stream->close();
  peer.collect();
  peer.send_data(16, peer.first());
  for (const Seg& seg : peer.collect()) EXPECT_FALSE(seg.flags.has(wire::kRst));
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = peer.first()});
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
}

// The peer's FIN waits behind more than its window holds.
TEST(Close, LastWordsThatCrossEndAfterATimeout) {
  Peer peer;
  peer.open();
  peer.user.stream->close();
  peer.collect();
  peer.send_data(16, peer.first());
  peer.collect();
  const TimePoint begin = peer.now;
  bool reset = false;
  while (!reset && peer.fire())
    for (const Seg& seg : peer.collect()) reset |= seg.flags.has(wire::kRst);
  EXPECT_TRUE(reset);
  EXPECT_LT(peer.now - begin, 1s);
}

// The user leaves from within a delivery: what stood behind is lost as well.
TEST(Close, RestOfADeliveryIsReset) {
  Peer peer;
  peer.open();
  peer.user.on_bytes_hook = [&] { peer.user.stream->close(); };
  peer.send({.seq = peer.peer_first() + 100, .ack = peer.first(), .payload = pattern(100)});
  peer.collect();
  peer.send({.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(100)});
  EXPECT_EQ(peer.user.received.size(), 100U);
  peer.collect();
  peer.send({.seq = peer.peer_first() + 200, .ack = peer.first() + 1});
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
}

TEST(Close, RepeatedDataAfterCloseIsNoLoss) {
  Peer peer;
  peer.open();
  peer.send_data(50, peer.first());
  peer.collect();
  peer.user.stream->close();
  peer.collect();
  peer.ack(peer.first() + 1);
  peer.send({.seq = peer.peer_first(), .ack = peer.first() + 1, .payload = pattern(50)});
  EXPECT_EQ(flags_of(peer.collect_one()), ".");
}

// RFC 9293 section 3.6: we say no more and hear on.
class HalfClose : public testing::Test {
 protected:
  HalfClose() {
    peer.open();
    peer.write(100);
    fin_acked = peer.first() + 101;
    peer.user.stream->finish();
    EXPECT_EQ(peer.user.stream->room(), 0U);
    EXPECT_FALSE(peer.user.stream->write(pattern(10), {}));
    const auto segs = peer.collect();
    EXPECT_EQ(segs.size(), 2U);
    EXPECT_EQ(flags_of(segs.back()), "F.");
  }
  void peer_finishes() {
    peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = fin_acked});
  }
  Peer peer;
  std::uint32_t fin_acked = 0;
};

TEST_F(HalfClose, EverythingIsHeardToTheEnd) {
  peer.send_data(50, peer.first());  // Before our FIN is acknowledged,
  EXPECT_EQ(peer.user.received.size(), 50U);
  peer.ack(fin_acked);
  EXPECT_EQ(peer.user.acked, 100U);
  peer.send_data(50, fin_acked);  // and after that.
  EXPECT_EQ(peer.user.received, pattern(100));
  EXPECT_EQ(peer.collect_one().ack, peer.peer_nxt());
  EXPECT_FALSE(peer.user.closed || peer.user.ended);
  peer_finishes();
  EXPECT_TRUE(peer.user.closed);
  EXPECT_TRUE(peer.user.ended);
  EXPECT_EQ(peer.collect_one().ack, peer.peer_nxt() + 1);
  while (peer.fire()) peer.collect();
  EXPECT_EQ(peer.stack.counters().tx_resets, 0U);
}

// As long as the peer is there: nobody waits for an end that our user did not ask for.
TEST_F(HalfClose, TheOtherHalfMayStayOpen) {
  peer.ack(fin_acked);
  while (peer.now < at(60s)) {
    ASSERT_FALSE(peer.wait().empty());
    peer.ack(fin_acked);
  }
  EXPECT_FALSE(peer.user.failed);
  peer.send_data(50, fin_acked);
  EXPECT_EQ(peer.user.received, pattern(50));
}

TEST_F(HalfClose, APeerThatVanishesIsTold) {
  peer.ack(fin_acked);
  while (!peer.user.failed && peer.fire()) peer.collect();
  ASSERT_TRUE(peer.user.failed);
  EXPECT_EQ(peer.user.failed->code, Errc::kTimedOut);
}

TEST_F(HalfClose, BothAtOnce) {
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = fin_acked - 1});
  EXPECT_TRUE(peer.user.closed);
  EXPECT_FALSE(peer.user.ended) << "ours is not acknowledged";
  peer.send({.seq = peer.peer_nxt() + 1, .ack = fin_acked});
  EXPECT_TRUE(peer.user.ended);
  EXPECT_EQ(peer.user.acked, 100U) << "and before that";
}

TEST_F(HalfClose, MayBecomeAWholeOne) {
  peer.ack(fin_acked);
  peer.user.stream->close();
  const TimePoint begin = peer.now;
  bool reset = false;
  while (peer.fire()) {
    for (const Seg& seg : peer.collect()) {
      reset = reset || seg.flags.has(wire::kRst);
      if (!reset) peer.ack(fin_acked);
    }
  }
  EXPECT_TRUE(reset) << "nobody waits for a peer that never ends its side";
  EXPECT_LE(peer.now - begin, peer.config.tcp.user_timeout + peer.config.tcp.keepalive_idle + 1s);
}

TEST_F(HalfClose, TheUserMayLeaveFromEachEvent) {
  peer.user.on_bytes_hook = [&] { peer.user.stream->abort(); };
  peer.send_data(50, fin_acked);
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
  EXPECT_FALSE(peer.user.ended);
}

// The peer ended first: finish() ends the rest.
TEST(HalfClosed, ByThePeerEndsWithOurs) {
  Peer peer;
  peer.open();
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first()});
  peer.collect();
  peer.write(100);
  peer.user.stream->finish();
  peer.collect();
  peer.send({.seq = peer.peer_first() + 1, .ack = peer.first() + 50});
  EXPECT_EQ(peer.user.acked, 50U);
  EXPECT_FALSE(peer.user.ended);
  peer.send({.seq = peer.peer_first() + 1, .ack = peer.first() + 101});
  EXPECT_EQ(peer.user.acked, 100U);
  EXPECT_TRUE(peer.user.ended);
  EXPECT_EQ(peer.stack.connections(), 0U);
}

// A connection in TIME-WAIT, the peer's side of it ended at peer_first().
class TimeWait : public testing::Test {
 protected:
  TimeWait() {
    peer.open_passive();
    peer.write(5000);
    peer.collect();
    peer.ack(peer.first() + 5000);
    peer.user.stream->close();
    peer.collect();
    peer.send(
        {.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first() + 5001});
    peer.collect();
    peer.advance(20ms);
  }
  // Still there: it acknowledges the FIN once more.
  void expect_waits() {
    peer.advance(20ms);
    peer.send(
        {.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first() + 5001});
    const Seg answer = peer.collect_one();
    EXPECT_EQ(flags_of(answer), ".");
    EXPECT_EQ(answer.ack, peer.peer_first() + 1);
  }
  Peer peer;
};

// RFC 1122 section 4.2.2.13: and from a number beyond all that were used.
TEST_F(TimeWait, ANewSynBeginsANewConnection) {
  peer.send({.flags = wire::kSyn, .seq = peer.irs + 1000});
  const Seg answer = peer.collect_one();
  EXPECT_EQ(flags_of(answer), "S.");
  EXPECT_EQ(answer.ack, peer.irs + 1001);
  EXPECT_LT(answer.seq - (peer.first() + 5001), 1U << 31);
}

// RFC 9293 section 3.10.7.4, eighth: whoever says it again has not heard our ACK.
TEST_F(TimeWait, BeginsAnewWithARepeatedFin) {
  peer.pass(peer.config.tcp.time_wait - 100ms);
  expect_waits();
  peer.pass(peer.config.tcp.time_wait - 100ms);
  expect_waits();
}

TEST_F(TimeWait, IsNotEndedByASynThatNobodyListensFor) {
  peer.stack.unlisten(kListenPort);
  peer.send({.flags = wire::kSyn, .seq = peer.irs + 1000});
  EXPECT_EQ(flags_of(peer.collect_one()), ".") << "RFC 5961 section 4.2";
  expect_waits();
}

TEST_F(TimeWait, IsNotEndedByWhatIsNoPlainSyn) {
  for (const auto flags : {wire::kSyn | wire::kFin, wire::kSyn | wire::kRst}) {
    peer.send({.flags = flags, .seq = peer.irs + 1000});
    for (const Seg& answer : peer.collect()) EXPECT_EQ(flags_of(answer), ".");
    expect_waits();
  }
}

TEST_F(TimeWait, IsNotEndedByAnOldSyn) {
  Seg old{.flags = wire::kSyn, .seq = peer.irs - 1000};
  old.options.timestamps = wire::Timestamps{peer.timestamp() - 1'000'000, 0};
  peer.send(old);
  EXPECT_EQ(flags_of(peer.collect_one()), ".");
  expect_waits();
}

// A table without another place has the one that TIME-WAIT leaves.
TEST(TimeWaitAlone, GivesItsOwnPlace) {
  StackConfig config = test_config();
  config.max_connections = 1;
  Peer peer(config);
  peer.open_passive();
  peer.user.stream->close();
  peer.collect();
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_first(), .ack = peer.first() + 1});
  peer.collect();
  peer.advance(10ms);
  peer.send({.flags = wire::kSyn, .seq = peer.irs + 1000});
  EXPECT_EQ(flags_of(peer.collect_one()), "S.");
}

}  // namespace
}  // namespace ztcp::tcp::test
