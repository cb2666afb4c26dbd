// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state machine against a hand-driven peer: how connections begin.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/tcp/connection.h"

namespace ztcp::tcp::test {
namespace {

TEST(Open, SynOffersEverything) {
  Peer peer;
  const auto stream = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
  ASSERT_TRUE(stream);
  const Seg syn = peer.collect_one();
  EXPECT_EQ(flags_of(syn), "S");
  EXPECT_EQ(syn.options.mss_bytes, 1460);
  EXPECT_EQ(syn.options.window_scale, 9) << "of the 16 MiB that it may grow to";
  EXPECT_TRUE(syn.options.sack_permitted);
  EXPECT_TRUE(syn.options.timestamps);
  EXPECT_GE(peer.our_port, peer.config.ephemeral_port_first);
  EXPECT_LE(peer.our_port, peer.config.ephemeral_port_last);
}

TEST(Open, HandshakeIsAcknowledgedAndThePathProbed) {
  Peer peer;
  const auto stream = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
  peer.user.stream = *stream;
  const Seg syn = peer.collect_one();
  peer.iss = syn.seq;
  peer.send(
      {.flags = wire::kSyn | wire::kAck, .seq = peer.irs, .ack = peer.first(), .options = offer()});
  EXPECT_TRUE(peer.user.opened);
  EXPECT_GT(peer.user.stream->room(), 0U);
  const auto segs = peer.collect();
  ASSERT_EQ(segs.size(), 2U);
  EXPECT_EQ(segs[0].seq, peer.first());
  EXPECT_EQ(segs[0].ack, peer.peer_first());
  EXPECT_TRUE(segs[0].payload.empty());
  EXPECT_EQ(segs[1].payload.size(), 1448U) << "MSS less the timestamps";
  EXPECT_EQ(segs[1].seq, peer.first() - 1448) << "all of it is old, so it carries no new data";
}

// A dial to a dead peer would otherwise refute that it is dead.
TEST(Open, ASynOfOursIsNoSignOfThePeersLife) {
  Peer peer;
  peer.open();
  const TimePoint heard = peer.stack.heard_from(kPeerIp);
  EXPECT_NE(heard, TimePoint::min());
  peer.advance(1s);
  User again;
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, again));
  EXPECT_EQ(peer.stack.heard_from(kPeerIp), heard);
}

// Linux with tcp_dsack = 0: the answer to old bytes is the last ACK once more.
TEST(Open, APeerWithoutDsackAnswersTheProbeToo) {
  Peer peer;
  peer.open(offer(), /*answer_probe=*/false);
  peer.ack(peer.first());
  peer.pass(2s);
  EXPECT_TRUE(peer.collect().empty()) << "no further probe";
}

TEST(Open, AnAnswerToASmallSegmentDoesNotProveThePath) {
  Peer peer;
  peer.open(offer(), /*answer_probe=*/false);
  int answered = 0;
  while (!peer.user.failed) {
    const auto segs = peer.wait();
    const bool compared =
        std::any_of(segs.begin(), segs.end(), [](const Seg& s) { return s.payload.empty(); });
    if (!compared) continue;
    peer.advance(1ms);
    peer.ack(peer.first());
    ASSERT_LT(++answered, 20);
  }
  EXPECT_GE(answered, 3);
  EXPECT_EQ(peer.user.failed->code, Errc::kPathMtu);
}

TEST(Open, SynIsRepeatedWithBackoffUntilTheTimeout) {
  Peer peer;
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user));
  std::vector<Duration> sent;
  const TimePoint start = peer.now;
  while (!peer.user.failed) {
    for (const Seg& seg : peer.collect())
      if (flags_of(seg) == "S") sent.push_back(peer.now - start);
    ASSERT_TRUE(peer.fire());
  }
  EXPECT_EQ(peer.user.failed->code, Errc::kTimedOut);
  ASSERT_GE(sent.size(), 5U);
  EXPECT_NEAR(in_ms(sent[1] - sent[0]) * 1000, 200'000, 40);
  EXPECT_NEAR(in_ms(sent[2] - sent[1]) * 1000, 400'000, 40);
  EXPECT_NEAR(in_ms(sent[3] - sent[2]) * 1000, 800'000, 40);
  EXPECT_NEAR(in_ms(peer.now - start), 20'000, 2);
  EXPECT_EQ(peer.stack.next_deadline(), kNever) << "nothing is left behind";
}

TEST(Open, ResetToASynIsARefusal) {
  Peer peer;
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user));
  const Seg syn = peer.collect_one();
  peer.send({.flags = wire::kRst | wire::kAck, .seq = 0, .ack = syn.seq + 7});
  EXPECT_FALSE(peer.user.failed) << "acknowledges nothing we sent";
  peer.send({.flags = wire::kRst | wire::kAck, .seq = 0, .ack = syn.seq + 1});
  ASSERT_TRUE(peer.user.failed);
  EXPECT_EQ(peer.user.failed->code, Errc::kRefused);
}

TEST(Open, WrongAckInAnswerToASynIsReset) {
  Peer peer;
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user));
  const Seg syn = peer.collect_one();
  peer.send({.flags = wire::kSyn | wire::kAck, .seq = 5, .ack = syn.seq + 99});
  const Seg reset = peer.collect_one();
  EXPECT_EQ(flags_of(reset), "R");
  EXPECT_EQ(reset.seq, syn.seq + 99);
  EXPECT_FALSE(peer.user.opened);
}

// Before ARP has answered there is no address to send it to.
TEST(Open, WrongAckBeforeTheSynHasLeftIsNotAnswered) {
  StackConfig config = test_config();
  config.ephemeral_port_first = config.ephemeral_port_last = 40000;
  Stack stack(config, {1, 2});
  User user;
  ASSERT_TRUE(stack.connect(at(0s), {kPeerIp, kPeerPort}, user));
  std::vector<TxFrame> out(4);
  EXPECT_EQ(stack.collect(at(0s), out), 2U) << "announcement and request";
  auto frame = frame_from_peer({.flags = wire::kSyn | wire::kAck, .ack = 99}, 40000, kPeerPort);
  stack.on_frames(at(0s), std::span(&frame->view, 1));
  EXPECT_EQ(stack.collect(at(0s), out), 0U);
}

TEST(Open, PeerWithoutOptionsIsAccepted) {
  Peer peer;
  peer.open({});
  peer.write(2000);
  const auto segs = peer.collect();
  ASSERT_EQ(segs.size(), 4U);
  EXPECT_EQ(segs[0].payload.size(), 536U);
  EXPECT_FALSE(segs[0].options.timestamps);
  EXPECT_EQ(segs[0].window, 65535) << "unscaled";
}

TEST(Accept, AnswersRepeatsAndTakesDataWithTheLastAck) {
  Peer peer;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  const Seg first = peer.collect_one();
  EXPECT_EQ(flags_of(first), "S.");
  EXPECT_EQ(first.ack, peer.peer_first());
  peer.iss = first.seq;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  EXPECT_EQ(peer.collect_one().seq, first.seq) << "the same connection";
  peer.send({.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(100)});
  EXPECT_TRUE(peer.user.opened);
  EXPECT_EQ(peer.user.received, pattern(100));
  const auto segs = peer.collect();
  ASSERT_EQ(segs.size(), 2U) << "an ACK, and the probe of the path towards the peer";
  EXPECT_EQ(segs[0].ack, peer.peer_first() + 100);
}

TEST(Accept, RefusedConnectionIsReset) {
  Peer peer;
  peer.user.refuse = true;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  peer.iss = peer.collect_one().seq;
  peer.send({.seq = peer.peer_first(), .ack = peer.first()});
  EXPECT_EQ(flags_of(peer.collect_one()), "R.");
}

TEST(Accept, AbandonedHandshakeGivesTheSlotBack) {
  Peer peer;
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  peer.our_port = kListenPort;
  peer.send({.flags = wire::kSyn, .seq = peer.irs, .options = offer()});
  peer.collect();
  while (peer.fire()) peer.collect();
  EXPECT_LE(peer.now - at(0s), 6s);
  EXPECT_FALSE(peer.user.opened);
}

}  // namespace
}  // namespace ztcp::tcp::test
