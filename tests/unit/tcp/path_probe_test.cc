// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Packet sizes of the path: the probe, and routers' reports.
#include "transport/tcp/path_probe.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ipv4.h"

namespace ztcp::tcp::test {
namespace {

// A path that silently drops full-size packets: reported in bounded time.
TEST(PathMtu, BlackHoleFailsTheConnectByName) {
  Pair pair;
  pair.drop = [](const TxFrame& frame, bool) {
    return std::size_t{frame.header_bytes} + frame.payload_bytes > 1400;
  };
  pair.connect();
  ASSERT_TRUE(pair.run_until([&] { return pair.client.failed.has_value(); }, 10s));
  EXPECT_EQ(pair.client.failed->code, Errc::kPathMtu);
  EXPECT_LT(in_ms(pair.now - at(0s)), 1200);
  const auto change = pair.left.take_path_change();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->before_bytes, 1500U);
  EXPECT_EQ(change->now_bytes, 0U) << "failed";
}

// The dialling side fails by name. The accepting side has a user that knows this connection only;
// it continues with smaller packets, and its NIC reports it.
TEST(PathMtu, BlackHoleTowardsTheOpenerIsReportedAndAvoided) {
  Pair pair;
  pair.drop = [](const TxFrame& frame, bool from_left) {
    return !from_left &&
           std::size_t{frame.header_bytes} - frame.l2_bytes + frame.payload_bytes > 1300;
  };
  pair.connect();
  std::vector<PathMtuChange> changes;
  ASSERT_FALSE(pair.run_until(
      [&] {
        while (const auto change = pair.right.take_path_change()) changes.push_back(*change);
        return pair.client.failed || pair.server.failed;
      },
      2900ms));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].remote, IpAddress(kOurIp));
  EXPECT_EQ(changes[0].before_bytes, 1500U);
  EXPECT_EQ(changes[0].now_bytes, 1400U);
  EXPECT_EQ(changes[1].now_bytes, 1280U);
  EXPECT_EQ(changes[1].cause, PathMtuChange::Cause::kSilence);
  EXPECT_EQ(pair.right.counters().path_mtu_cuts, 2U);
}

TEST(PathMtu, OneProbeIsEnoughOnAGoodPath) {
  Pair pair;
  pair.connect();
  const std::uint64_t sent = pair.left.counters().tx_segments;
  EXPECT_EQ(sent, 4U) << "SYN, ACK, probe, answer to the peer's probe";
  EXPECT_EQ(pair.right.counters().tx_segments, 3U) << "SYN, answer to our probe, probe";
  // Up to the first keepalive.
  pair.run_until([] { return false; }, TcpSettings{}.keepalive_idle - 100ms);
  EXPECT_EQ(pair.left.counters().tx_segments, sent);
}

class ProbeOf : public testing::Test {
 protected:
  using Verdict = PathProbe::Verdict;
  // One round: the probe is sent, and the small segment beside it may be answered.
  Verdict round(bool small_answered) {
    EXPECT_TRUE(probe.is_due());
    probe.on_sent(now, SeqNum(1000), SeqNum(2000), 5ms);
    EXPECT_FALSE(probe.is_due());
    if (small_answered) answered = now + 1ms;
    EXPECT_GE(probe.deadline(), now + 5ms);
    now = probe.deadline();
    return probe.on_timer(answered);
  }
  PathProbe probe;
  TimePoint now = at(0s);
  TimePoint answered{};
};

TEST_F(ProbeOf, ConnectTakesAboutASecond) {
  probe.begin(now, PathProbe::Cause::kConnect);
  for (int i = 1; i < PathProbe::kConnectProbes; ++i) EXPECT_EQ(round(true), Verdict::kNone);
  EXPECT_EQ(round(true), Verdict::kTooLarge);
  EXPECT_LE(in_ms(now - at(0s)), 1000);
}

TEST_F(ProbeOf, ConnectLeavesASilentPeerToOtherTimers) {
  probe.begin(now, PathProbe::Cause::kConnect);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(round(false), Verdict::kNone);
}

TEST_F(ProbeOf, TimeoutsNeedsThreeRoundsOfSmallAnswers) {
  probe.begin(now, PathProbe::Cause::kTimeouts);
  EXPECT_EQ(round(true), Verdict::kNone);
  EXPECT_EQ(round(false), Verdict::kNone);
  EXPECT_EQ(round(true), Verdict::kNone);
  EXPECT_EQ(round(true), Verdict::kTooLarge);
}

TEST_F(ProbeOf, TimeoutsOfASilentPeerEnds) {
  probe.begin(now, PathProbe::Cause::kTimeouts);
  for (int i = 1; i < PathProbe::kTimeoutProbes; ++i) EXPECT_EQ(round(false), Verdict::kNone);
  EXPECT_EQ(round(false), Verdict::kUnknown);
  EXPECT_FALSE(probe.is_active());
  EXPECT_TRUE(probe.is_answered_by({1000, 2000})) << "late";
  EXPECT_TRUE(probe.is_answered_by({900, 2000})) << "joined with another";
  EXPECT_FALSE(probe.is_answered_by({1000, 1999}));
}

// RFC 1191 with the check of RFC 5927 section 7.
class FragmentationNeeded : public testing::Test {
 protected:
  void report(std::uint32_t sequence, std::uint16_t mtu) {
    Bytes bytes(wire::kEthernetBytes + wire::kIpv4Bytes + wire::kEmittedIcmpErrorBytes);
    std::size_t at =
        wire::emit_ethernet({.destination = kOurMac, .source = kPeerMac}, bytes.data());
    wire::Ipv4Header ip;
    ip.source = Ipv4Address{0x0a0000fe};
    ip.destination = kOurIp;
    ip.protocol = wire::IpProtocol::kIcmp;
    ip.total_bytes = wire::kIpv4Bytes + wire::kEmittedIcmpErrorBytes;
    at += wire::emit_ipv4(ip, bytes.data() + at);
    wire::emit_icmp_error({.code = wire::IcmpError::kFragmentationNeeded,
                           .next_hop_mtu_bytes = mtu,
                           .source = {kOurIp, peer.our_port},
                           .destination = {kPeerIp, peer.peer_port},
                           .sequence = sequence},
                          bytes.data() + at);
    RxFrame frame;
    frame.head = bytes;
    peer.stack.on_frames(peer.now, std::span(&frame, 1));
  }
  Peer peer;
};

TEST_F(FragmentationNeeded, SegmentsDataInFlightAgain) {
  peer.open();
  peer.write(4 * 1448);
  ASSERT_EQ(peer.collect().size(), 4U);
  report(peer.first() + 1448, 1000);
  const auto again = peer.collect();
  ASSERT_GE(again.size(), 4U);
  EXPECT_EQ(again[0].seq, peer.first());
  EXPECT_EQ(again[0].payload.size(), 1000U - 20 - 32);
  EXPECT_TRUE(peer.raw[0].copy_payload) << "its first copy may still arrive";
  peer.advance(1ms);
  peer.ack(peer.first() + 4 * 1448);
  EXPECT_EQ(peer.user.acked, 4U * 1448);
}

TEST_F(FragmentationNeeded, WithImplausibleValuesIsIgnored) {
  peer.open();
  peer.write(2 * 1448);
  ASSERT_EQ(peer.collect().size(), 2U);
  report(peer.first() + 9999, 1000);  // Not in flight.
  report(peer.first() - 1, 1000);
  report(peer.first(), 100);   // Absurd.
  report(peer.first(), 1500);  // Nothing new.
  EXPECT_TRUE(peer.collect().empty());
}

}  // namespace
}  // namespace ztcp::tcp::test
