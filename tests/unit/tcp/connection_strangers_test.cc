// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state machine and segments from strangers.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/tcp/connection.h"

namespace ztcp::tcp::test {
namespace {

// RFC 5961 section 3.2: only the exact number resets.
TEST(Stranger, BlindResetIsChallenged) {
  Peer peer;
  peer.open();
  peer.send({.flags = wire::kRst, .seq = peer.peer_first() + 1000});
  EXPECT_FALSE(peer.user.failed);
  const Seg challenge = peer.collect_one();
  EXPECT_EQ(flags_of(challenge), ".");
  EXPECT_EQ(challenge.ack, peer.peer_first());
  peer.send({.flags = wire::kRst, .seq = peer.peer_first() + (8U << 20)});
  EXPECT_TRUE(peer.collect().empty()) << "outside the window: no answer";
  peer.send({.flags = wire::kRst, .seq = peer.peer_first()});
  ASSERT_TRUE(peer.user.failed);
  EXPECT_EQ(peer.user.failed->code, Errc::kPeerClosed);
}

// Section 4.2, and section 7's limit.
TEST(Stranger, SynIsChallengedSparingly) {
  Peer peer;
  peer.open();
  peer.advance(1s);
  int answers = 0;
  for (int i = 0; i < 100; ++i) {
    peer.send({.flags = wire::kSyn, .seq = peer.peer_first() + 77});
    answers += static_cast<int>(peer.collect().size());
    peer.advance(100us);
  }
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(peer.user.failed);
}

// Section 5.2.
TEST(Stranger, AckOutsideTheWindowIsChallenged) {
  Peer peer;
  peer.open();
  peer.send({.seq = peer.peer_first(), .ack = peer.first() + 1, .payload = pattern(10)});
  EXPECT_TRUE(peer.user.received.empty()) << "acknowledges data that was never sent";
  EXPECT_EQ(peer.collect().size(), 1U);
  peer.advance(1s);
  peer.send({.seq = peer.peer_first(), .ack = peer.first() - (1U << 30), .payload = pattern(10)});
  EXPECT_TRUE(peer.user.received.empty());
  EXPECT_EQ(peer.collect().size(), 1U);
  EXPECT_EQ(peer.stack.counters().challenge_acks, 2U);
}

// The count is reported as a warning of guessing strangers, so only guesses may count. Probes and
// ACKs that were overtaken by data are below the window, and every quiet connection has them.
TEST(Stranger, OnlyGuessesAreCounted) {
  Peer peer;
  peer.open();
  peer.send_data(1000, peer.first());
  peer.collect();
  const auto answers = [&](const Seg& seg) {
    peer.advance(1s);
    peer.send(seg);
    return peer.collect().size();
  };
  EXPECT_EQ(answers({.seq = peer.peer_nxt() - 1, .ack = peer.first()}), 1U);
  EXPECT_EQ(answers({.seq = peer.peer_first(), .ack = peer.first()}), 1U);
  EXPECT_EQ(peer.stack.counters().challenge_acks, 0U);
  EXPECT_EQ(answers({.seq = peer.peer_nxt() - (8U << 20), .ack = peer.first()}), 1U);
  EXPECT_EQ(answers({.seq = peer.peer_nxt() + (8U << 20), .ack = peer.first()}), 1U);
  EXPECT_EQ(answers({.flags = wire::kSyn, .seq = peer.peer_nxt() - 1}), 1U);
  EXPECT_EQ(peer.stack.counters().challenge_acks, 3U);
}

// A stranger that knows only the addresses and ports must not advance PAWS' timestamp: one datagram
// would silence the peer.
TEST(Stranger, OldOrWrongSegmentDoesNotMoveTheTimestamp) {
  Peer peer;
  peer.open();
  Seg old{.seq = peer.peer_first() - 1'000'000, .ack = 4711, .payload = pattern(10)};
  old.options.timestamps = wire::Timestamps{peer.timestamp() + 1'000'000'000, 0};
  peer.send(old);
  Seg wrong{.seq = peer.peer_first(), .ack = peer.first() + 77'777, .payload = pattern(10)};
  wrong.options.timestamps = old.options.timestamps;
  peer.send(wrong);
  peer.collect();
  peer.send_data(100, peer.first());
  EXPECT_EQ(peer.user.received, pattern(100));
}

// RFC 9293 section 3.10.7.2: no other segment can begin or end a connection.
TEST(Stranger, AListenerAnswersOnlySynAndAck) {
  Peer peer;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  for (const auto flags : {wire::kFin, wire::kPsh, wire::TcpFlags{}, wire::kUrg | wire::kFin,
                           wire::kSyn | wire::kFin, wire::kSyn | wire::kRst, wire::kRst}) {
    peer.send({.flags = flags, .seq = 10, .payload = pattern(10)});
    EXPECT_TRUE(peer.collect().empty()) << int{flags.bits()};
  }
  peer.send({.flags = wire::kAck | wire::kFin, .seq = 10, .ack = 4711});
  const Seg reset = peer.collect_one();
  EXPECT_EQ(flags_of(reset), "R");
  EXPECT_EQ(reset.seq, 4711U);
}

TEST(Stranger, SegmentWithoutConnectionIsReset) {
  Peer peer;
  peer.our_port = 5555;
  peer.send({.flags = wire::kAck, .seq = 10, .ack = 4711});
  const Seg one = peer.collect_one();
  EXPECT_EQ(flags_of(one), "R");
  EXPECT_EQ(one.seq, 4711U);
  peer.send({.flags = wire::kSyn, .seq = 10});
  const Seg two = peer.collect_one();
  EXPECT_EQ(flags_of(two), "R.");
  EXPECT_EQ(two.ack, 11U);
  peer.send({.flags = wire::kRst, .seq = 10});
  EXPECT_TRUE(peer.collect().empty());
}

}  // namespace
}  // namespace ztcp::tcp::test
