// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state machine against a hand-driven peer: openings, endings, and what strangers send.
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
