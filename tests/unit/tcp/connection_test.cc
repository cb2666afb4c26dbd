// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state machine against a hand-driven peer: openings, data, and what strangers send.
#include "transport/tcp/connection.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

TEST(Open, SynOffersEverything) {
  Peer peer;
  const auto stream = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
  ASSERT_TRUE(stream);
  const Seg syn = peer.collect_one();
  EXPECT_EQ(flags_of(syn), "S");
  EXPECT_EQ(syn.options.mss_bytes, 1460);
  EXPECT_EQ(syn.options.window_scale, 8);
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
  EXPECT_EQ(segs[1].seq, peer.first() - 1448) << "all of it is old, so it is nobody's data";
}

// Linux with tcp_dsack = 0: the answer to old bytes is the last ACK once more.
TEST(Open, APeerWithoutDsackAnswersTheProbeToo) {
  Peer peer;
  peer.open(offer(), /*answer_probe=*/false);
  peer.ack(peer.first());
  peer.pass(2s);
  EXPECT_TRUE(peer.collect().empty()) << "no further probe";
}

TEST(Open, AnAnswerToASmallSegmentSaysNothingAboutThePath) {
  Peer peer;
  peer.open(offer(), /*answer_probe=*/false);
  int answered = 0;
  while (!peer.user.failed) {
    const auto segs = peer.wait();
    const bool compared =
        std::any_of(segs.begin(), segs.end(), [](const Seg& s) { return s.payload.empty(); });
    if (!compared) continue;
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

// Before ARP has answered there is nobody to send that to.
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

TEST(Open, PeerWithoutOptionsIsTakenAsItIs) {
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
  EXPECT_EQ(peer.collect_one().ack, peer.peer_first() + 100);
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

TEST(Data, InOrderGoesUpAndIsAcknowledgedOncePerBurst) {
  Peer peer;
  peer.open();
  std::vector<Seg> burst;
  for (std::uint32_t i = 0; i < 5; ++i)
    burst.push_back({.seq = peer.peer_first() + i * 100,
                     .ack = peer.first(),
                     .payload = pattern(100, static_cast<std::uint8_t>(i * 100 % 251))});
  peer.send_burst(burst);
  EXPECT_EQ(peer.user.received, pattern(500));
  EXPECT_EQ(peer.collect_one().ack, peer.peer_first() + 500) << "across the wrap at 2^32";
}

TEST(Data, HoleIsReportedAtOnceAndFilled) {
  Peer peer;
  peer.open();
  const std::uint32_t p = peer.peer_first();
  peer.send({.seq = p + 100, .ack = peer.first(), .payload = pattern(100, 100)});
  const Seg dup = peer.collect_one();
  EXPECT_EQ(dup.ack, p);
  ASSERT_EQ(dup.options.sack_count, 1);
  EXPECT_EQ(dup.options.sack[0], (wire::SackBlock{p + 100, p + 200}));
  EXPECT_EQ(peer.held.size(), 1U);
  peer.send({.seq = p, .ack = peer.first(), .payload = pattern(100)});
  EXPECT_EQ(peer.user.received, pattern(200));
  EXPECT_EQ(peer.collect_one().ack, p + 200);
  EXPECT_EQ(peer.held.size(), 0U);
}

TEST(Data, ManyHolesInABurstAreAllReported) {
  Peer peer;
  peer.open();
  const std::uint32_t p = peer.peer_first();
  std::vector<Seg> burst;
  for (std::uint32_t i = 0; i < 8; ++i)
    burst.push_back({.seq = p + 100 + 200 * i, .ack = peer.first(), .payload = pattern(100)});
  peer.send_burst(burst);
  std::vector<bool> told(8);
  const auto acks = peer.collect();
  EXPECT_EQ(acks.size(), 3U);
  for (const Seg& ack : acks)
    for (const wire::SackBlock& block : ack.options.sack_blocks())
      told[(block.begin - p - 100) / 200] = true;
  EXPECT_EQ(told, std::vector<bool>(8, true));
}

TEST(Data, OldSegmentIsAnsweredWithADsack) {
  Peer peer;
  peer.open();
  const std::uint32_t p = peer.peer_first();
  const Seg data{.seq = p, .ack = peer.first(), .payload = pattern(100)};
  peer.send(data);
  peer.collect();
  peer.send(data);
  const Seg answer = peer.collect_one();
  EXPECT_EQ(answer.ack, p + 100);
  ASSERT_EQ(answer.options.sack_count, 1);
  EXPECT_EQ(answer.options.sack[0], (wire::SackBlock{p, p + 100}));
  EXPECT_EQ(peer.user.received.size(), 100U);
}

// RFC 7323 section 5.
TEST(Data, PawsDropsAnOldTimestamp) {
  Peer peer;
  peer.open();
  Seg old{.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(10)};
  old.options.timestamps = wire::Timestamps{peer.timestamp() - 1'000'000, peer.last_ts};
  peer.send(old);
  EXPECT_TRUE(peer.user.received.empty());
  EXPECT_EQ(peer.collect_one().ack, peer.peer_first()) << "but answered";
  Seg none{.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(10)};
  auto frame = frame_from_peer(none, peer.our_port, peer.peer_port);
  peer.stack.on_frames(peer.now, std::span(&frame->view, 1));
  EXPECT_TRUE(peer.user.received.empty()) << "without timestamps nothing counts";
}

// RFC 5961 section 7 goes for PAWS' answers, too: a stranger who knows the four numbers gets few.
TEST(Data, PawsAnswersSparingly) {
  Peer peer;
  peer.open();
  std::size_t answers = 0;
  for (int i = 0; i < 100; ++i) {
    Seg old{.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(10)};
    old.options.timestamps = wire::Timestamps{peer.timestamp() - 1'000'000, peer.last_ts};
    peer.send(old);
    answers += peer.collect().size();
    peer.advance(100us);
  }
  EXPECT_EQ(answers, 1U);
}

TEST(Data, DamagedSegmentIsAsIfItNeverCame) {
  Peer peer;
  peer.open();
  auto frame =
      frame_from_peer({.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(10)},
                      peer.our_port, peer.peer_port);
  frame->bytes.back() ^= std::byte{1};
  peer.stack.on_frames(peer.now, std::span(&frame->view, 1));
  EXPECT_EQ(peer.stack.counters().rx_bad_checksum, 1U);
  EXPECT_TRUE(peer.user.received.empty());
  EXPECT_TRUE(peer.collect().empty());
}

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
  EXPECT_TRUE(peer.collect().empty()) << "outside the window: not a word";
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
  EXPECT_TRUE(peer.user.received.empty()) << "acknowledges what was never sent";
  EXPECT_EQ(peer.collect().size(), 1U);
  peer.advance(1s);
  peer.send({.seq = peer.peer_first(), .ack = peer.first() - (1U << 30), .payload = pattern(10)});
  EXPECT_TRUE(peer.user.received.empty());
  EXPECT_EQ(peer.collect().size(), 1U);
  EXPECT_EQ(peer.stack.counters().challenge_acks, 2U);
}

// What is counted makes a warning of strangers that guess: only guesses are. Probes and ACKs that
// were overtaken by data stand below the window, and every quiet connection has them.
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

// Whoever knows only the four numbers of the connection must not move PAWS' clock: one datagram
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

// RFC 9293 section 3.10.7.2: nothing else could begin a connection, and nothing ends one.
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

TEST(Keepalive, SilentPeerIsProbedThriceAndGivenUp) {
  Peer peer;
  peer.open();
  int probes = 0;
  while (!peer.user.failed) {
    ASSERT_TRUE(peer.fire());
    for (const Seg& seg : peer.collect()) {
      EXPECT_EQ(seg.seq, peer.first() - 1);
      ++probes;
    }
  }
  EXPECT_EQ(probes, 3);
  EXPECT_EQ(peer.user.failed->code, Errc::kTimedOut);
  const TcpSettings settings;
  EXPECT_NEAR(in_ms(peer.now - at(0s)),
              in_ms(settings.keepalive_idle + 3 * settings.keepalive_interval), 5);
}

TEST(Keepalive, AnswerIsEnough) {
  Peer peer;
  peer.open();
  while (peer.now < at(60s)) {
    ASSERT_EQ(peer.wait().size(), 1U);
    peer.ack(peer.first());
  }
  EXPECT_FALSE(peer.user.failed);
}

// RFC 7323 section 5.3, R3: a probe is old and leaves TS.Recent where it was. Had the peer heard
// nothing else for 36 minutes, it would take all that we say for old.
TEST(Keepalive, SilentConnectionKeepsThePeersTimestampNew) {
  Peer peer;
  peer.open();
  std::uint32_t recent = peer.last_ts;
  int refreshed = 0;
  while (peer.now < at(2h - 1min)) {
    for (const Seg& seg : peer.wait()) {
      const std::uint32_t value = seg.options.timestamps->value;
      ASSERT_LT(value - recent, 1U << 31) << in_ms(peer.now - at(0s));
      if (seg.seq != peer.first()) continue;
      recent = value;
      ++refreshed;
    }
    peer.ack(peer.first());
  }
  EXPECT_FALSE(peer.user.failed);
  EXPECT_EQ(refreshed, 11) << "and no more often than that needs";
}

TEST(Keepalive, ProbesAreAnswered) {
  Peer peer;
  peer.open();
  peer.send({.seq = peer.peer_first() - 1, .ack = peer.first()});
  EXPECT_EQ(peer.collect_one().ack, peer.peer_first());
}

}  // namespace
}  // namespace ztcp::tcp::test
