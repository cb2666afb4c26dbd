// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Before a connection is established: segments in SYN-SENT and SYN-RECEIVED that are not part of a
// plain handshake (RFC 9293 sections 3.5 and 3.10.7.2 to 3.10.7.4, RFC 5961).
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

// A listener that has answered a SYN.
class SynReceived : public testing::Test {
 protected:
  void SetUp() override { begin(offer()); }
  void begin(const wire::TcpOptions& options) {
    ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
    peer.our_port = kListenPort;
    peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = options});
    const Seg answer = peer.collect_one();
    ASSERT_EQ(flags_of(answer), "S.");
    ASSERT_EQ(answer.window, 65535);
    peer.iss = answer.seq;
  }
  void expect_challenge() {
    const auto segs = peer.collect();
    ASSERT_EQ(segs.size(), 1U);
    EXPECT_EQ(flags_of(segs[0]), ".");
    EXPECT_EQ(segs[0].seq, peer.first());
    EXPECT_EQ(segs[0].ack, peer.peer_first());
    EXPECT_EQ(segs[0].options.sack_count, 0);
  }
  void expect_opens() {
    peer.send({.seq = peer.peer_first(), .ack = peer.first()});
    EXPECT_TRUE(peer.user.opened);
  }
  Peer peer;
};

// The SYN-ACK offered 65535 bytes, independent of the later window.
TEST_F(SynReceived, BytesBeyondTheOfferAreNotTaken) {
  peer.send({.seq = peer.peer_first() + 65535, .ack = peer.first(), .payload = pattern(100)});
  EXPECT_FALSE(peer.user.opened);
  EXPECT_TRUE(peer.held.empty());
  expect_challenge();
  expect_opens();
}

TEST_F(SynReceived, BytesWithinTheOfferAreHeld) {
  peer.send({.seq = peer.peer_first() + 65435, .ack = peer.first(), .payload = pattern(100)});
  EXPECT_TRUE(peer.user.opened);
  EXPECT_EQ(peer.held.size(), 1U);
}

// An ACK announces the whole window, and then all of it is accepted.
TEST_F(SynReceived, BytesWithinTheWindowOfAChallengeAckAreHeld) {
  peer.send({.seq = peer.peer_first() + 65535, .ack = peer.first(), .payload = pattern(100)});
  EXPECT_GT(peer.collect_one().window << 8, 65635);
  peer.send({.seq = peer.peer_first() + 65535, .ack = peer.first(), .payload = pattern(100)});
  EXPECT_TRUE(peer.user.opened);
  EXPECT_EQ(peer.held.size(), 1U);
}

// RFC 5961 section 3.2.
TEST_F(SynReceived, AnInexactResetIsIgnored) {
  peer.send({.flags = wire::kRst, .seq = peer.peer_first() + 1000});
  expect_challenge();
  peer.send({.flags = wire::kRst, .seq = peer.peer_first() - 1});
  peer.send({.flags = wire::kRst, .seq = peer.peer_first() + 70'000});
  EXPECT_TRUE(peer.collect().empty()) << "outside the window: no answer";
  expect_opens();
}

TEST_F(SynReceived, AnExactResetEndsIt) {
  peer.send({.flags = wire::kRst, .seq = peer.peer_first()});
  peer.send({.seq = peer.peer_first(), .ack = peer.first()});
  EXPECT_FALSE(peer.user.opened);
  EXPECT_EQ(flags_of(peer.collect_one()), "R") << "no connection any more";
}

// A peer that begins anew learns of the old attempt, resets it, and tries again.
TEST_F(SynReceived, AnotherSynIsAnsweredWithAnAck) {
  for (const std::uint32_t other : {5000U, 0U - 100'000U}) {
    peer.send({.flags = wire::kSyn, .seq = peer.irs + other, .options = offer()});
    expect_challenge();
    peer.advance(20ms);
  }
  peer.send({.flags = wire::kRst, .seq = peer.peer_first()});
  peer.send({.flags = wire::kSyn, .seq = peer.irs + 5000, .options = offer()});
  const Seg answer = peer.collect_one();
  EXPECT_EQ(flags_of(answer), "S.");
  EXPECT_EQ(answer.ack, peer.irs + 5001);
}

// Section 3.10.7.4, first.
TEST_F(SynReceived, AnUnacceptableSegmentIsAnswered) {
  peer.send({.seq = peer.peer_first() - 500, .ack = peer.first()});
  expect_challenge();
  EXPECT_FALSE(peer.user.opened);
  expect_opens();
}

// RFC 7323 section 3.2, and section 5.
TEST_F(SynReceived, AnAckWithoutTheAgreedTimestampsIsDropped) {
  const Seg bare{.seq = peer.peer_first(), .ack = peer.first()};
  auto frame = frame_from_peer(bare, peer.our_port, peer.peer_port);
  peer.stack.on_frames(peer.now, std::span(&frame->view, 1));
  EXPECT_FALSE(peer.user.opened);
  EXPECT_TRUE(peer.collect().empty());
  Seg old = bare;
  old.options.timestamps = wire::Timestamps{peer.timestamp() - 1'000'000, peer.last_ts};
  peer.send(old);
  EXPECT_FALSE(peer.user.opened);
  expect_challenge();
  expect_opens();
}

TEST_F(SynReceived, AWrongAckIsReset) {
  peer.send({.seq = peer.peer_first(), .ack = peer.first() + 1});
  const Seg reset = peer.collect_one();
  EXPECT_EQ(flags_of(reset), "R");
  EXPECT_EQ(reset.seq, peer.first() + 1);
  expect_opens();
}

class SynReceivedUnscaled : public SynReceived {
 protected:
  void SetUp() override {}
};

// The window of a peer that does not scale stays the same: no byte 4 MiB ahead is held.
TEST_F(SynReceivedUnscaled, BytesBeyondTheWindowAreNotHeld) {
  wire::TcpOptions options = offer();
  options.window_scale.reset();
  begin(options);
  peer.send({.seq = peer.peer_first() + 100'000, .ack = peer.first(), .payload = pattern(100)});
  EXPECT_FALSE(peer.user.opened);
  EXPECT_TRUE(peer.held.empty());
  expect_challenge();
  expect_opens();
}

// A stack whose SYN is answered by hand.
class SynSent : public testing::Test {
 protected:
  SynSent() {
    const auto stream = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
    EXPECT_TRUE(stream);
    peer.user.stream = *stream;
    peer.iss = peer.collect_one().seq;
  }
  Peer peer;
};

// Section 3.10.7.3: data after the SYN is accepted, too.
TEST_F(SynSent, BytesAndFinWithTheAnswerAreTaken) {
  peer.send({.flags = wire::kSyn | wire::kAck | wire::kFin,
             .seq = peer.irs,
             .ack = peer.first(),
             .payload = pattern(100),
             .options = offer()});
  EXPECT_TRUE(peer.user.opened);
  EXPECT_EQ(peer.user.received, pattern(100));
  EXPECT_TRUE(peer.user.closed);
  const auto segs = peer.collect();
  ASSERT_FALSE(segs.empty());
  EXPECT_EQ(segs[0].ack, peer.peer_first() + 101);
}

// MUST-10, figure 8.
TEST_F(SynSent, APeersSynOpensFromBothSides) {
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  EXPECT_FALSE(peer.user.opened);
  const Seg answer = peer.collect_one();
  EXPECT_EQ(flags_of(answer), "S.");
  EXPECT_EQ(answer.seq, peer.iss);
  EXPECT_EQ(answer.ack, peer.peer_first());
  EXPECT_EQ(answer.options.window_scale, 9);
  EXPECT_TRUE(answer.options.sack_permitted);
  peer.send(
      {.flags = wire::kSyn | wire::kAck, .seq = peer.irs, .ack = peer.first(), .options = offer()});
  EXPECT_TRUE(peer.user.opened);
  const auto segs = peer.collect();
  ASSERT_FALSE(segs.empty());
  EXPECT_EQ(flags_of(segs[0]), ".");
  EXPECT_EQ(segs[0].ack, peer.peer_first());
  peer.send_data(100, peer.first());
  EXPECT_EQ(peer.user.received, pattern(100));
  EXPECT_EQ(peer.stack.counters().connections_opened, 1U);
}

// The peer took our SYN-ACK and answers it as any other.
TEST_F(SynSent, AfterBothSynsAnAckIsEnough) {
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  peer.collect();
  peer.send({.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(10)});
  EXPECT_TRUE(peer.user.opened);
  EXPECT_EQ(peer.user.received, pattern(10));
}

TEST_F(SynSent, AfterBothSynsAResetRefuses) {
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  peer.collect();
  peer.send({.flags = wire::kRst, .seq = peer.peer_first() + 5});
  EXPECT_FALSE(peer.user.failed) << "challenged";
  EXPECT_EQ(flags_of(peer.collect_one()), ".");
  peer.send({.flags = wire::kRst, .seq = peer.peer_first()});
  ASSERT_TRUE(peer.user.failed);
  EXPECT_EQ(peer.user.failed->code, Errc::kRefused);
}

TEST_F(SynSent, AfterBothSynsTheConnectTimeoutApplies) {
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  while (!peer.user.failed) {
    for (const Seg& seg : peer.collect()) EXPECT_EQ(flags_of(seg), "S.");
    ASSERT_TRUE(peer.fire());
  }
  EXPECT_EQ(peer.user.failed->code, Errc::kTimedOut);
  EXPECT_NEAR(in_ms(peer.now - at(0s)), 20'000, 2);
}

TEST_F(SynSent, AfterBothSynsTheUserMayStillLeave) {
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  peer.collect();
  peer.user.stream->close();
  const Seg reset = peer.collect_one();
  EXPECT_EQ(flags_of(reset), "R.");
  EXPECT_EQ(reset.seq, peer.first());
  EXPECT_EQ(peer.stack.next_deadline(), kNever);
}

// Two stacks, each from the port that the other opens to; any one frame may be lost.
TEST(SimultaneousOpen, EndsInOneConnection) {
  constexpr std::uint16_t kLeftPort = 5000;
  constexpr std::uint16_t kRightPort = 6000;
  for (int lost = -1; lost < 8; ++lost) {
    StackConfig left = test_config();
    left.ephemeral_port_first = left.ephemeral_port_last = kLeftPort;
    StackConfig right = test_config();
    right.mac = kPeerMac;
    right.address = {kPeerIp, 24};
    right.ephemeral_port_first = right.ephemeral_port_last = kRightPort;
    Pair pair(left, right);
    int frame = 0;
    pair.drop = [&](const TxFrame& tx, bool) { return tx.l3_bytes != 0 && frame++ == lost; };
    const auto one = pair.left.connect(pair.now, {kPeerIp, kRightPort}, pair.client);
    const auto two = pair.right.connect(pair.now, {kOurIp, kLeftPort}, pair.server);
    ASSERT_TRUE(one && two);
    pair.client.stream = *one;
    pair.server.stream = *two;
    ASSERT_TRUE(pair.run_until([&] { return pair.client.opened && pair.server.opened; })) << lost;
    const Bytes out = pattern(5000);
    const Fragment fragment{out.data(), 5000, kUnmapped};
    ASSERT_TRUE(pair.client.stream->write({}, std::span(&fragment, 1)));
    ASSERT_TRUE(pair.server.stream->write({}, std::span(&fragment, 1)));
    ASSERT_TRUE(pair.run_until([&] {
      return pair.client.received == out && pair.server.received == out &&
             pair.client.acked == out.size() && pair.server.acked == out.size();
    })) << lost;
    EXPECT_EQ(pair.left.connections() + pair.right.connections(), 2U);
    EXPECT_EQ(pair.left.counters().tx_resets + pair.right.counters().tx_resets, 0U);
  }
}

}  // namespace
}  // namespace ztcp::tcp::test
