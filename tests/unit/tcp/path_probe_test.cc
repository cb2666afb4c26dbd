// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the path takes: the probe, and what routers say.
#include "transport/tcp/path_probe.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/icmp.h"

namespace ztcp::tcp::test {
namespace {

// A path that takes no full-size packet and says nothing: named in bounded time.
TEST(PathMtu, BlackHoleIsNamed) {
  Pair pair;
  pair.drop = [](const TxFrame& frame, bool) {
    return std::size_t{frame.header_bytes} + frame.payload_bytes > 1400;
  };
  pair.connect();
  ASSERT_TRUE(pair.run_until([&] { return pair.client.failed.has_value(); }, 10s));
  EXPECT_EQ(pair.client.failed->code, Errc::kPathMtu);
  EXPECT_LT(in_ms(pair.now - at(0s)), 5000);
}

TEST(PathMtu, OneProbeIsEnoughOnAGoodPath) {
  Pair pair;
  pair.connect();
  const std::uint64_t sent = pair.left.counters().tx_segments;
  EXPECT_EQ(sent, 3U) << "SYN, ACK, probe";
  // Up to the first keepalive.
  pair.run_until([] { return false; }, TcpSettings{}.keepalive_idle - 100ms);
  EXPECT_EQ(pair.left.counters().tx_segments, sent);
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

TEST_F(FragmentationNeeded, CutsWhatIsInFlightAnew) {
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

TEST_F(FragmentationNeeded, IsDoubted) {
  peer.open();
  peer.write(2 * 1448);
  ASSERT_EQ(peer.collect().size(), 2U);
  report(peer.first() + 9999, 1000);  // Not in flight.
  report(peer.first() - 1, 1000);
  report(peer.first(), 100);   // Absurd.
  report(peer.first(), 1500);  // No news.
  EXPECT_TRUE(peer.collect().empty());
}

}  // namespace
}  // namespace ztcp::tcp::test
