// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state machine against a hand-driven peer: data and keepalives.
#include "transport/tcp/connection.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

TEST(Data, InOrderDataIsDeliveredAndAcknowledgedOncePerBurst) {
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

TEST(Data, HoleIsReportedAtOnceAndCanBeFilled) {
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

// RFC 5681 section 4.2: the sender would take further ones for duplicates.
TEST(Data, SegmentOverSeveralHeldOnesIsAcknowledgedOnce) {
  Peer peer;
  peer.open();
  const std::uint32_t p = peer.peer_first();
  for (const std::uint32_t at : {200U, 400U, 600U}) {
    peer.send({.seq = p + at,
               .ack = peer.first(),
               .payload = pattern(100, static_cast<std::uint8_t>(at % 251))});
    peer.collect();
  }
  peer.send({.seq = p, .ack = peer.first(), .payload = pattern(800)});
  EXPECT_EQ(peer.user.received, pattern(800));
  const Seg answer = peer.collect_one();
  EXPECT_EQ(answer.ack, p + 800);
  ASSERT_EQ(answer.options.sack_count, 1);
  EXPECT_EQ(answer.options.sack[0], (wire::SackBlock{p + 200, p + 300}));
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

// RFC 5961 section 7 applies to PAWS' answers, too: a stranger that knows addresses and ports gets
// few.
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

TEST(Data, DamagedSegmentIsIgnored) {
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

TEST(Keepalive, AnAnswerKeepsTheConnection) {
  Peer peer;
  peer.open();
  while (peer.now < at(60s)) {
    ASSERT_EQ(peer.wait().size(), 1U);
    peer.ack(peer.first());
  }
  EXPECT_FALSE(peer.user.failed);
}

// RFC 7323 section 5.3, R3: a probe is old and leaves TS.Recent unchanged. If the peer received
// nothing else for 36 minutes, it would take all our segments for old.
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
