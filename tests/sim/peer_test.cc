// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Corners that need a peer written by hand: closed windows, false acknowledgements, resets that
// nearly fit, old duplicates, ICMP.
#include "tests/sim/peer.h"

#include <chrono>

#include <gtest/gtest.h>

#include "transport/wire/icmp.h"
#include "transport/wire/ipv4.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;
using wire::kAck;
using wire::kFin;
using wire::kPsh;
using wire::kRst;
using wire::kSyn;

// A connection that the peer has accepted, with all segments of the handshake read.
class PeerTest : public testing::Test {
 protected:
  void connect(std::size_t bytes_to_send, std::size_t bytes_to_receive = 100'000) {
    to_send_ = pattern(bytes_to_send, 1);
    to_receive_ = pattern(bytes_to_receive, 2);
    app_.emplace(to_send_, to_receive_);
    peer_.accept(*app_);
    ASSERT_TRUE(app_->is_open());
  }
  Segment segment(std::uint32_t seq, std::uint32_t ack, wire::TcpFlags flags = kAck) {
    Segment s;
    s.flags = flags;
    s.seq = seq;
    s.ack = ack;
    s.options.timestamps = peer_.timestamps();
    return s;
  }
  Segment data(std::uint32_t offset, std::uint32_t size, std::uint32_t ack) {
    Segment s = segment(1 + offset, ack, kAck | kPsh);
    const auto from = to_receive_.begin() + offset;
    s.payload.assign(from, from + size);
    return s;
  }
  // Reads all that the stack has to send now; returns the sequence number after the last byte.
  std::uint32_t drain() {
    std::uint32_t end = 0;
    while (const auto s = peer_.receive())
      end = std::max(end, s->seq + static_cast<std::uint32_t>(s->payload.size()));
    return end;
  }
  bool is_silent() { return !peer_.receive().has_value(); }

  Bytes to_send_;
  Bytes to_receive_;
  std::optional<App> app_;
  Peer peer_;
};

TEST_F(PeerTest, SynCarriesOurOptions) {
  Bytes none;
  App app(none, none);
  ASSERT_TRUE(peer_.stack().connect(peer_.now(), Peer::kEndpoint, app));
  const auto syn = peer_.wait(1s);
  ASSERT_TRUE(syn);
  EXPECT_EQ(syn->flags, kSyn | wire::kAe | wire::kEce | wire::kCwr);
  EXPECT_EQ(syn->options.mss_bytes, 1460);
  EXPECT_TRUE(syn->options.window_scale);
  EXPECT_TRUE(syn->options.sack_permitted);
  EXPECT_TRUE(syn->options.timestamps);
}

TEST_F(PeerTest, AClosedWindowIsProbedUntilItOpens) {
  connect(50'000);
  const std::uint32_t end = drain();
  ASSERT_GT(end, 1U);
  Segment closed = segment(1, end);
  closed.window = 0;
  peer_.send(closed);
  TimePoint last = peer_.now();
  for (int probe = 0; probe < 6; ++probe) {
    const auto s = peer_.wait(10s);
    ASSERT_TRUE(s) << "no probe " << probe;
    EXPECT_LE(s->payload.size(), 1U);
    EXPECT_GT(s->at, last);  // Not in a burst.
    last = s->at;
    Segment answer = segment(1, end);
    answer.window = 0;
    peer_.send(answer);
  }
  // A peer that answers probes may stay closed for ever (RFC 9293 section 3.8.6.1).
  EXPECT_FALSE(app_->error());
  peer_.send(segment(1, end));
  EXPECT_GT(drain(), end);
}

TEST_F(PeerTest, AClosedWindowAndSilenceEndInATimeout) {
  connect(50'000);
  const std::uint32_t end = drain();
  Segment closed = segment(1, end);
  closed.window = 0;
  peer_.send(closed);
  peer_.advance(60s);
  ASSERT_TRUE(app_->error());
  EXPECT_EQ(app_->error()->code, Errc::kTimedOut);
}

TEST_F(PeerTest, NothingBeyondTheWindowIsSent) {
  connect(500'000);
  const std::uint32_t first = drain();
  Segment narrow = segment(1, first);
  narrow.window = 20;  // Times 128: 2560 bytes.
  peer_.send(narrow);
  EXPECT_LE(drain(), first + 2560);
}

TEST_F(PeerTest, InitialWindowIsTenSegments) {
  connect(500'000);
  EXPECT_LE(drain(), 1U + 10 * 1460);
}

TEST_F(PeerTest, OutOfOrderDataIsSackedThenDelivered) {
  connect(0);
  drain();
  peer_.send(data(1000, 1000, 1));
  auto ack = peer_.wait(100ms);
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->ack, 1U);
  ASSERT_EQ(ack->options.sack_count, 1);
  EXPECT_EQ(ack->options.sack[0], (wire::SackBlock{1001, 2001}));
  EXPECT_EQ(app_->received(), 0U);
  peer_.send(data(3000, 1000, 1));
  ack = peer_.wait(100ms);
  ASSERT_TRUE(ack);
  ASSERT_EQ(ack->options.sack_count, 2);
  // The most recent one first (RFC 2018 section 4).
  EXPECT_EQ(ack->options.sack[0], (wire::SackBlock{3001, 4001}));
  EXPECT_EQ(ack->options.sack[1], (wire::SackBlock{1001, 2001}));
  peer_.send(data(0, 1000, 1));
  EXPECT_EQ(app_->received(), 2000U);
  peer_.send(data(2000, 1000, 1));
  EXPECT_EQ(app_->received(), 4000U);
  EXPECT_EQ(app_->violation(), "");
  EXPECT_EQ(peer_.frames_held(), 0U);
}

TEST_F(PeerTest, ADuplicateIsReportedByDsack) {
  connect(0);
  drain();
  peer_.send(data(0, 1000, 1));
  drain();
  peer_.send(data(0, 1000, 1));
  const auto ack = peer_.wait(100ms);
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->ack, 1001U);
  ASSERT_GE(ack->options.sack_count, 1);
  EXPECT_EQ(ack->options.sack[0], (wire::SackBlock{1, 1001}));  // RFC 2883.
  EXPECT_EQ(app_->received(), 1000U);
}

TEST_F(PeerTest, OverlappingPiecesDeliverEachByteOnce) {
  connect(0);
  drain();
  peer_.send(data(500, 1000, 1));
  peer_.send(data(1200, 800, 1));
  peer_.send(data(100, 600, 1));
  peer_.send(data(0, 300, 1));
  EXPECT_EQ(app_->received(), 2000U);
  EXPECT_EQ(app_->violation(), "");
  EXPECT_EQ(peer_.frames_held(), 0U);
}

TEST_F(PeerTest, AnAckOfUnsentDataIsAnsweredAndDropped) {
  connect(1000);
  const std::uint32_t end = drain();
  peer_.send(segment(1, end + 5000));
  EXPECT_EQ(app_->acked(), 0U);
  const auto answer = peer_.receive();
  ASSERT_TRUE(answer);  // RFC 9293 section 3.10.7.4: send an ACK, drop the segment.
  EXPECT_EQ(answer->payload.size(), 0U);
  EXPECT_FALSE(app_->error());
}

TEST_F(PeerTest, OnlyAnExactResetEndsTheConnection) {
  connect(0);
  drain();
  Segment reset = segment(1 + 100, 1, kRst);
  reset.options = {};
  peer_.send(reset);  // In the window, not exact: RFC 5961 section 3.2.
  EXPECT_FALSE(app_->error());
  const auto challenge = peer_.receive();
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->flags, kAck);
  reset.seq = 1U - 100U;
  peer_.send(reset);  // Outside.
  EXPECT_FALSE(app_->error());
  reset.seq = 1;
  peer_.send(reset);
  ASSERT_TRUE(app_->error());
  EXPECT_EQ(app_->error()->code, Errc::kPeerClosed);
}

TEST_F(PeerTest, ASynOnTheConnectionIsChallenged) {
  connect(0);
  drain();
  Segment syn = segment(1, 1, kSyn);
  peer_.send(syn);
  EXPECT_FALSE(app_->error());
  const auto challenge = peer_.receive();
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->flags, kAck);
  EXPECT_EQ(challenge->ack, 1U);
}

TEST_F(PeerTest, OldTimestampsAreRefused) {
  connect(0);
  drain();
  peer_.advance(1s);
  peer_.send(data(0, 100, 1));
  ASSERT_EQ(app_->received(), 100U);
  Segment old = data(100, 100, 1);
  old.options.timestamps->value -= 500;
  peer_.send(old);
  EXPECT_EQ(app_->received(), 100U);  // PAWS, RFC 7323 section 5.3.
  peer_.send(data(100, 100, 1));
  EXPECT_EQ(app_->received(), 200U);
}

TEST_F(PeerTest, ALostSegmentIsFoundBySack) {
  connect(100'000);
  drain();
  peer_.advance(100us);
  // The first segment is missing, the next three arrived.
  Segment ack = segment(1, 1);
  ack.options.sack_count = 1;
  ack.options.sack[0] = {1 + 1448, 1 + 4 * 1448};
  peer_.send(ack);
  // RACK waits a fraction of the round trip for reordering before it calls the segment lost.
  std::optional<Segment> again;
  for (int i = 0; i < 20 && !again; ++i) {
    auto s = peer_.wait(4ms);
    if (s && s->seq == 1) again = std::move(s);
  }
  ASSERT_TRUE(again);
  EXPECT_TRUE(std::equal(again->payload.begin(), again->payload.end(), to_send_.begin()));
}

TEST_F(PeerTest, ALostTailIsProbedBeforeTheRto) {
  connect(3 * 1448);
  drain();
  const TimePoint sent = peer_.now();
  const auto probe = peer_.wait(1s);
  ASSERT_TRUE(probe);
  EXPECT_GE(probe->payload.size(), 1U);
  EXPECT_LT(probe->at - sent, 500ms);
}

TEST_F(PeerTest, RetransmissionsBackOff) {
  connect(1000);
  drain();
  std::vector<Duration> gaps;
  TimePoint last = peer_.now();
  while (const auto s = peer_.wait(10s)) {
    if (s->seq != 1) continue;  // The path MTU is probed meanwhile.
    gaps.push_back(s->at - last);
    last = s->at;
  }
  ASSERT_GE(gaps.size(), 5U);
  // The first is the tail loss probe; after it the timer doubles up to its ceiling.
  for (std::size_t i = 2; i < gaps.size(); ++i) {
    EXPECT_GE(gaps[i] + 1ms, gaps[i - 1]) << i;
    EXPECT_LE(gaps[i], 2s + 50ms) << i;
  }
  ASSERT_TRUE(app_->error());
  EXPECT_EQ(app_->error()->code, Errc::kTimedOut);
}

TEST_F(PeerTest, FinIsAcknowledgedAndOurFinFollows) {
  connect(0, 500);
  drain();
  Segment last = data(0, 500, 1);
  last.flags |= kFin;
  peer_.send(last);
  EXPECT_TRUE(app_->is_peer_closed());
  EXPECT_EQ(app_->received(), 500U);
  const auto ack = peer_.receive();
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->ack, 502U);
  app_->close();
  const auto fin = peer_.receive();
  ASSERT_TRUE(fin);
  EXPECT_TRUE(fin->flags.has(kFin));
  EXPECT_EQ(peer_.stack().unfinished(), 1U);
  peer_.send(segment(502, 2));
  EXPECT_EQ(peer_.stack().unfinished(), 0U);
}

TEST_F(PeerTest, AFalseFragmentationNeededIsIgnored) {
  connect(100'000);
  const std::uint32_t end = drain();
  const auto icmp = [&](std::uint32_t seq, std::uint16_t mtu) {
    Bytes message(wire::kEmittedIcmpErrorBytes);
    wire::emit_icmp_error({wire::IcmpError::kUnreachable,
                           wire::IcmpError::kFragmentationNeeded,
                           mtu,
                           {Ipv4Address{0x0a4d0101}, peer_.local_port()},
                           Peer::kEndpoint,
                           peer_.local_isn() + seq},
                          message.data());
    peer_.inject(peer_.ip_frame(wire::IpProtocol::kIcmp, message));
  };
  icmp(end + 1'000'000, 600);  // Quotes bytes that are not in flight (RFC 5927).
  EXPECT_FALSE(app_->error());
  EXPECT_TRUE(is_silent());
  icmp(1, 40);  // Below IPv4's least MTU.
  peer_.send(segment(1, end));
  const auto next = peer_.wait(100ms);
  ASSERT_TRUE(next);
  EXPECT_GT(next->payload.size(), 100U);
}

TEST_F(PeerTest, AnEchoRequestIsAnswered) {
  connect(0);
  drain();
  Bytes ping{std::byte{8}, std::byte{0}, std::byte{0}, std::byte{0},
             std::byte{0}, std::byte{1}, std::byte{0}, std::byte{2}};
  wire::store_be16(ping.data() + 2, wire::internet_checksum(ping));
  peer_.inject(peer_.ip_frame(wire::IpProtocol::kIcmp, ping));
  EXPECT_FALSE(app_->error());
}

TEST_F(PeerTest, ASegmentWithABadChecksumIsIgnored) {
  connect(0);
  drain();
  const std::uint64_t before = peer_.stack().counters().rx_bad_checksum;
  Bytes garbage(200, std::byte{0x10});
  peer_.inject(peer_.ip_frame(wire::IpProtocol::kTcp, garbage));
  EXPECT_FALSE(app_->error());
  EXPECT_EQ(app_->received(), 0U);
  EXPECT_GE(peer_.stack().counters().rx_bad_checksum + peer_.stack().counters().rx_malformed,
            before + 1);
}

TEST_F(PeerTest, AStrangersSegmentGetsAReset) {
  connect(0);
  drain();
  // Another port of ours, without a connection.
  wire::TcpHeader header;
  header.source_port = 5555;
  header.destination_port = 9;
  header.flags = kAck;
  header.acknowledgment = 4711;
  Bytes tcp(wire::kTcpBytes);
  wire::emit_tcp(header, tcp.data());
  auto sum = wire::pseudo_header_checksum(Peer::kEndpoint.address.v4(), Ipv4Address{0x0a4d0101},
                                          static_cast<std::uint32_t>(tcp.size()));
  sum.add(tcp);
  wire::store_be16(tcp.data() + wire::kTcpChecksumOffset, sum.finish());
  peer_.inject(peer_.ip_frame(wire::IpProtocol::kTcp, tcp));
  const auto reset = peer_.receive();
  ASSERT_TRUE(reset);
  EXPECT_TRUE(reset->flags.has(kRst));
  EXPECT_EQ(reset->seq + peer_.local_isn(), 4711U);  // RFC 9293 section 3.10.7.1.
}

}  // namespace
}  // namespace ztcp::sim
