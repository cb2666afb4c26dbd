// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One side of a connection has ended, and the other continues.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

// RFC 9293 section 3.6: our side is closed and still receives.
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

TEST_F(HalfClose, EverythingIsReceivedToTheEnd) {
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

// As long as the peer lives: there is no timeout for an end that our user did not ask for.
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

TEST_F(HalfClose, APeerThatVanishesIsReported) {
  peer.ack(fin_acked);
  while (!peer.user.failed && peer.fire()) peer.collect();
  ASSERT_TRUE(peer.user.failed);
  EXPECT_EQ(peer.user.failed->code, Errc::kTimedOut);
}

TEST_F(HalfClose, BothSidesCloseAtOnce) {
  peer.send({.flags = wire::kFin | wire::kAck, .seq = peer.peer_nxt(), .ack = fin_acked - 1});
  EXPECT_TRUE(peer.user.closed);
  EXPECT_FALSE(peer.user.ended) << "ours is not acknowledged";
  peer.send({.seq = peer.peer_nxt() + 1, .ack = fin_acked});
  EXPECT_TRUE(peer.user.ended);
  EXPECT_EQ(peer.user.acked, 100U) << "and before that";
}

TEST_F(HalfClose, MayBecomeAFullClose) {
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
  EXPECT_TRUE(reset) << "a peer that never ends its side is not waited for";
  EXPECT_LE(peer.now - begin, peer.config.tcp.user_timeout + peer.config.tcp.keepalive_idle + 1s);
}

TEST_F(HalfClose, TheUserMayLeaveFromEachEvent) {
  peer.user.on_bytes_hook = [&] { peer.user.stream->abort(); };
  peer.send_data(50, fin_acked);
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
  EXPECT_FALSE(peer.user.ended);
}

// The peer ended first: finish() ends the rest.
TEST(HalfClosed, ConnectionEndsWithOurFinish) {
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

}  // namespace
}  // namespace ztcp::tcp::test
