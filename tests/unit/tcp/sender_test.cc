// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sending against a hand-driven peer: losses and their repair.
#include "transport/tcp/sender.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/tcp/sending.h"

namespace ztcp::tcp::test {
namespace {

TEST_F(Sending, InitialWindowIsTenSegments) {
  peer.write(20 * kMss);
  EXPECT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  peer.ack(seq(10));
  EXPECT_EQ(peer.collect().size(), 10U);
  EXPECT_EQ(peer.user.acked, 10U * kMss);
}

TEST_F(Sending, FirstTransmissionsAreReferencedAndRepeatsCopied) {
  peer.write(kMss);
  peer.collect();
  EXPECT_FALSE(peer.raw[0].copy_payload);
  for (int i = 0; i < 20 && counters().tx_retransmitted_bytes == 0; ++i) {
    peer.fire();
    peer.collect();
  }
  ASSERT_EQ(peer.raw.size(), 1U);
  EXPECT_TRUE(peer.raw[0].copy_payload);
}

TEST_F(Sending, UserIsToldAcksOncePerBurst) {
  peer.write(6 * kMss);
  peer.collect();
  const int before = peer.user.acked_calls;
  std::vector<Seg> acks;
  for (std::uint32_t i = 1; i <= 6; ++i) acks.push_back({.seq = peer.peer_nxt(), .ack = seq(i)});
  peer.send_burst(acks);
  EXPECT_EQ(peer.user.acked, 6U * kMss);
  EXPECT_EQ(peer.user.acked_calls, before + 1);
}

// RFC 8985 section 7.2: only ACKs that acknowledge something restart the tail loss probe's timer.
// Incoming bulk repeats the same ACK in each segment.
TEST_F(Sending, DataWithoutANewAckDelaysNoProbe) {
  Peer quiet(make_config());
  quiet.open();
  std::vector<Duration> waited;
  for (Peer* const each : {&quiet, &peer}) {
    const std::uint32_t end = each->first() + kMss;
    each->write(kMss);
    each->collect();
    each->advance(1ms);
    each->ack(end);
    each->write(kMss);
    ASSERT_EQ(each->collect().size(), 1U);
    const TimePoint begin = each->now;
    for (int i = 0; i < 4; ++i) {
      each->advance(100us);
      if (each == &peer) each->send_data(100, end);
      each->collect();
    }
    for (int i = 0; i < 10 && each->collect().empty(); ++i) each->fire();
    EXPECT_EQ(counters().rto_fired, 0U);
    waited.push_back(each->now - begin);
    each->send_data(100, end + kMss);
    EXPECT_EQ(each->user.acked, 2U * kMss);
  }
  EXPECT_EQ(waited[0], waited[1]);
}

// RFC 8985: three segments SACKed above a hole repair it at once, and only it.
TEST_F(Sending, HoleIsRepairedByFastRecovery) {
  warm_up();
  peer.write(10 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  peer.ack(seq(2), {{seq(3), seq(6)}});
  EXPECT_EQ(numbers(peer.collect()), std::vector<int>{2});
  EXPECT_EQ(counters().rack_recoveries, 1U);
  peer.advance(1ms);
  peer.ack(seq(12));
  EXPECT_EQ(counters().rto_fired, 0U);
  EXPECT_EQ(counters().tx_retransmitted_bytes, kMss);
  // RFC 9438: seven tenths of the ten segments.
  peer.write(20 * kMss);
  EXPECT_EQ(peer.collect().size(), 7U);
}

TEST_F(Sending, LateSegmentIsNotRetransmitted) {
  warm_up();
  peer.write(3 * kMss);
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(2), {{seq(3), seq(4)}});
  EXPECT_TRUE(peer.collect().empty()) << "the reordering window is a quarter round trip";
  peer.advance(100us);
  peer.ack(seq(5));
  EXPECT_TRUE(peer.collect().empty());
  EXPECT_EQ(counters().tx_retransmitted_bytes, 0U);
}

// RFC 8985 section 7: the last segment of a flight is probed before the RTO.
TEST_F(Sending, LostTailIsProbed) {
  warm_up();
  peer.write(2 * kMss);
  peer.collect();
  const TimePoint sent = peer.now;
  EXPECT_EQ(numbers(peer.wait()), std::vector<int>{3}) << "the last one";
  EXPECT_EQ(counters().tlp_fired, 1U);
  EXPECT_GE(peer.now - sent, 2ms);
  EXPECT_LT(peer.now - sent, 5ms);
  // The probe's SACK shows the hole before it.
  peer.advance(1ms);
  peer.ack(seq(2), {{seq(3), seq(4)}});
  EXPECT_EQ(numbers(peer.collect()), std::vector<int>{2});
  EXPECT_EQ(counters().rto_fired, 0U);
}

TEST_F(Sending, NeedlessProbeDoesNotMakeRackWaitLonger) {
  warm_up();
  peer.write(2 * kMss);
  peer.collect();
  Seg late{.seq = peer.peer_nxt(), .ack = seq(4)};
  late.options.timestamps = wire::Timestamps{peer.timestamp(), peer.last_ts};
  ASSERT_EQ(numbers(peer.wait()), std::vector<int>{3});
  late.options.timestamps->value = peer.timestamp();
  peer.send(late);
  peer.ack(seq(4), {{seq(3), seq(4)}});  // The probe was the second copy.
  peer.write(3 * kMss);
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(4), {{seq(5), seq(6)}});
  EXPECT_TRUE(peer.collect().empty());
  peer.pass(400us);
  EXPECT_EQ(numbers(peer.collect()), std::vector<int>{4}) << "a quarter round trip, not a half";
}

// RFC 2883 reports of bytes before the first: only path probes carried them, and the second report
// arrives after the path is proven.
TEST_F(Sending, LateAnswerToThePathProbeDoesNotMakeRackWaitLonger) {
  Peer probed(make_config());
  probed.open(offer(), /*answer_probe=*/false);
  const std::uint32_t first = probed.first();
  probed.pass(150ms);
  ASSERT_FALSE(probed.collect().empty()) << "the probe again";
  probed.ack(first, {{first - kMss, first}});
  probed.write(2 * kMss);
  probed.collect();
  probed.advance(1ms);
  probed.ack(first, {{first - kMss, first}});
  probed.ack(first + 2 * kMss);
  probed.write(3 * kMss);
  probed.collect();
  probed.advance(1ms);
  probed.ack(first + 2 * kMss, {{first + 3 * kMss, first + 4 * kMss}});
  EXPECT_TRUE(probed.collect().empty());
  probed.pass(300us);
  const auto repeat = probed.collect();
  ASSERT_EQ(repeat.size(), 1U) << "a quarter round trip, not a half";
  EXPECT_EQ(repeat[0].seq, first + 2 * kMss);
}

// RFC 5681 section 3.1: one window's losses count once, however they were detected. In recovery PRR
// sets the window, which is no measure of the path.
TEST_F(Sending, TimeoutInRecoveryLeavesSsthresh) {
  warm_up();
  peer.write(60 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  peer.ack(seq(12));
  ASSERT_EQ(peer.collect().size(), 20U);
  peer.advance(1ms);
  peer.ack(seq(12), {{seq(29), seq(32)}});  // 17 are lost, and so are their retransmissions.
  ASSERT_EQ(counters().rack_recoveries, 1U);
  for (int i = 0; counters().rto_fired == 0; ++i) {
    ASSERT_LT(i, 100);
    peer.collect();
    ASSERT_TRUE(peer.fire());
  }
  std::uint32_t una = 12;
  std::uint32_t sent = 32;
  std::size_t most = 0;
  // Now everything arrives.
  for (int round = 0; una < 60 && round < 20; ++round) {
    const auto segs = peer.collect();
    most = std::max(most, segs.size());
    for (const Seg& seg : segs) sent = std::max(sent, (seg.seq - peer.first()) / kMss + 1);
    const bool repeats = una < 29;
    una = repeats ? una + static_cast<std::uint32_t>(segs.size()) : sent;
    if (una >= 29 && una < 32) una = 32;
    peer.advance(1ms);
    peer.ack(seq(una));
  }
  EXPECT_GE(most, 10U) << "slow start goes to 14, seven tenths of 20";
}

TEST_F(Sending, ProbePrefersNewData) {
  warm_up();
  peer.write(11 * kMss);  // One more than the window.
  ASSERT_EQ(peer.collect().size(), 10U);
  EXPECT_EQ(numbers(peer.wait()), std::vector<int>{12});
}

TEST_F(Sending, PeerWithoutSackIsRepairedByDuplicates) {
  Peer plain(make_config());
  wire::TcpOptions options = offer();
  options.sack_permitted = false;
  plain.open(options);
  plain.ack(plain.first());  // The window scale takes effect.
  plain.write(8 * kMss);
  ASSERT_EQ(plain.collect().size(), 8U);
  plain.advance(1ms);
  plain.ack(plain.first());
  plain.ack(plain.first());
  EXPECT_TRUE(plain.collect().empty());
  plain.ack(plain.first());
  const auto repeat = plain.collect();
  ASSERT_GE(repeat.size(), 1U);
  EXPECT_EQ(repeat[0].seq, plain.first());
  // RFC 6582: a partial ACK means the next hole.
  plain.advance(1ms);
  plain.ack(plain.first() + 3 * kMss);
  EXPECT_EQ(plain.collect().at(0).seq, plain.first() + 3 * kMss);
}

TEST_F(Sending, ClosedWindowIsProbedAndReopens) {
  warm_up();
  peer.write(4 * kMss);
  peer.collect();
  peer.send({.seq = peer.peer_nxt(), .ack = seq(6), .window = 0});
  peer.write(3 * kMss);
  EXPECT_TRUE(peer.collect().empty());
  int probes = 0;
  // Longer than the user timeout: a peer that answers may keep it closed.
  while (peer.now < at(100s)) {
    ASSERT_TRUE(peer.fire());
    for (const Seg& seg : peer.collect()) {
      EXPECT_TRUE(seg.payload.empty());
      EXPECT_EQ(seg.seq, seq(6) - 1);
      ++probes;
      peer.send({.seq = peer.peer_nxt(), .ack = seq(6), .window = 0});
    }
  }
  EXPECT_GT(probes, 40);
  EXPECT_LT(probes, 80);
  EXPECT_FALSE(peer.user.failed);
  peer.send({.seq = peer.peer_nxt(), .ack = seq(6)});
  EXPECT_EQ(peer.collect().size(), 3U);
}

TEST_F(Sending, SillyWindowsAreNotFilled) {
  warm_up();
  peer.write(10 * kMss);
  peer.collect();
  // Four segments in flight and space for a hundred bytes more.
  peer.send({.seq = peer.peer_nxt(), .ack = seq(8), .window = (4 * kMss + 100) / 256});
  peer.write(10 * kMss);
  EXPECT_TRUE(peer.collect().empty());
}

TEST_F(Sending, RoomIsAWindowAndAChunk) {
  EXPECT_EQ(peer.user.stream->room(), 10 * kMss + (256U << 10));
  peer.write(100'000);
  EXPECT_EQ(peer.user.stream->room(), 10 * kMss + (256U << 10) - 100'000);
}

// The ISN is a hash plus a clock of 4.096 us ticks (RFC 6528): at the right time it is the wanted
// one.
// Bytes behind a hole are queued until it is filled, and no longer in flight: the stream takes as
// many more, and the user is told.
TEST_F(Sending, SackedBytesMakeRoom) {
  peer.write(10 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  const std::size_t before = peer.user.stream->room();
  int told = 0;
  peer.user.on_acked_hook = [&] { ++told; };
  peer.advance(1ms);
  peer.ack(seq(0), {{seq(1), seq(3)}});
  EXPECT_EQ(told, 1);
  EXPECT_EQ(peer.user.stream->room(), before + 2 * kMss);
}

TEST_F(Sending, NumbersWrap) {
  constexpr std::uint32_t kWanted = 0xffffe000;
  Peer wrapping(make_config());
  wrapping.now += std::uint64_t{kWanted - peer.iss} * 4096ns;
  wrapping.open();
  ASSERT_EQ(wrapping.iss, kWanted);
  const std::uint32_t first = wrapping.first();
  wrapping.write(20 * kMss);
  ASSERT_EQ(wrapping.collect().size(), 10U);
  wrapping.advance(1ms);
  wrapping.ack(first + 2 * kMss, {{first + 3 * kMss, first + 10 * kMss}});
  const auto repeat = wrapping.collect();
  ASSERT_GE(repeat.size(), 1U);
  EXPECT_EQ(repeat[0].seq, first + 2 * kMss);
  std::uint32_t sent = 10 + static_cast<std::uint32_t>(repeat.size()) - 1;
  wrapping.advance(1ms);
  wrapping.ack(first + sent * kMss);
  while (sent < 20) {
    const auto segs = wrapping.collect();
    ASSERT_FALSE(segs.empty());
    EXPECT_EQ(segs[0].payload, pattern(kMss, static_cast<std::uint8_t>(sent * kMss % 251)));
    sent += static_cast<std::uint32_t>(segs.size());
    wrapping.advance(1ms);
    wrapping.ack(first + sent * kMss);
  }
  EXPECT_EQ(wrapping.user.acked, 20U * kMss);
  EXPECT_EQ(wrapping.stack.counters().rto_fired, 0U);
}

// RFC 6675 section 5: the SACK blocks of an ACK are used, even if a later ACK overtook it.
TEST_F(Sending, SackOfAnOvertakenAckIsTaken) {
  warm_up();
  peer.write(6 * kMss);
  ASSERT_EQ(peer.collect().size(), 6U);
  peer.advance(1ms);
  peer.ack(seq(3));
  ASSERT_TRUE(bulk(peer.collect()).empty());
  peer.ack(seq(2), {{seq(4), seq(7)}});
  EXPECT_EQ(numbers(bulk(peer.collect())), std::vector<int>{3}) << "three SACKed behind it";
}

// Also past PAWS, which takes its timestamp for an old one: by as little as networks reorder.
TEST_F(Sending, SackOfAnAckWithAnOvertakenTimestampIsTaken) {
  warm_up();
  peer.write(6 * kMss);
  ASSERT_EQ(peer.collect().size(), 6U);
  peer.advance(1ms);
  peer.ack(seq(3));
  Seg late{.seq = peer.peer_nxt(), .ack = seq(2)};
  late.options.sack[late.options.sack_count++] = {seq(4), seq(7)};
  late.options.timestamps = wire::Timestamps{peer.timestamp() - 10'000, peer.last_ts};
  peer.send(late);
  EXPECT_EQ(counters().rx_paws, 1U);
  EXPECT_EQ(counters().rx_duplicate, 0U);
  EXPECT_TRUE(bulk(peer.collect()).empty()) << "too old";
  late.options.timestamps->value = peer.timestamp() - 100;
  peer.send(late);
  EXPECT_EQ(counters().rx_paws, 1U);
  EXPECT_EQ(numbers(bulk(peer.collect())), std::vector<int>{3});
}

// Its first block was no D-SACK when it was sent.
TEST_F(Sending, SackOfAnOvertakenAckIsNoDsack) {
  warm_up();
  peer.write(6 * kMss);
  ASSERT_EQ(peer.collect().size(), 6U);
  peer.advance(1ms);
  peer.ack(seq(6));
  peer.ack(seq(2), {{seq(3), seq(5)}});
  EXPECT_EQ(counters().dsacked_segments, 0U);
  peer.ack(seq(6), {{seq(3), seq(4)}});
  EXPECT_EQ(counters().dsacked_segments, 1U);
}

}  // namespace
}  // namespace ztcp::tcp::test
