// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How connections end, against a hand-driven peer: closed, half closed, aborted, and segments for a
// connection in TIME-WAIT (RFC 9293 sections 3.6 and 3.10.4 to 3.10.7).
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

TEST(Close, OurSideEndsFirst) {
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

TEST(Close, PeersSideEndsFirst) {
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

TEST(Close, BothSidesEndAtOnce) {
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

TEST(Close, PeerThatNeverClosesItsSideIsForgotten) {
  Peer peer;
  peer.open();
  peer.user.stream->close();
  const Seg fin = peer.collect_one();
  peer.ack(fin.seq + 1);
  bool reset = false;
  while (peer.fire()) {
    for (const Seg& seg : peer.collect()) {
      reset = reset || flags_of(seg) == "R.";
      if (flags_of(seg) == ".") peer.ack(fin.seq + 1);  // Alive, according to the keepalive.
    }
  }
  EXPECT_TRUE(reset);
  EXPECT_NEAR(in_ms(peer.now - at(0s)), in_ms(peer.config.tcp.user_timeout), 1000);
}

TEST(Close, AbortSendsAResetAndForgets) {
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

// SHLD-3: data that nobody takes is not acknowledged; the peer learns that it was lost.
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

// But not before the peer has our earlier data: a reset would overtake lost segments.
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

// Both users closed with data in flight that neither stack acknowledges: waiting for that would
// never end.
TEST(Close, CrossingDataAfterCloseEndsAtOnce) {
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

TEST(Close, CrossingDataAfterCloseEndsAtItsFin) {
  Peer peer;
  peer.open();
  peer.user.stream->close();
  peer.collect();
  peer.send_data(16, peer.first());
  for (const Seg& seg : peer.collect()) EXPECT_FALSE(seg.flags.has(wire::kRst));
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = peer.first()});
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
}

// The peer's FIN waits behind more data than its window allows.
TEST(Close, CrossingDataAfterCloseEndsAfterATimeout) {
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

// The user closes inside a delivery: the rest of that data is lost as well.
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

}  // namespace
}  // namespace ztcp::tcp::test
