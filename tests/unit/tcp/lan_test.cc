// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two Stacks on a switch that delivers by MAC address, where hosts move and strangers forge.
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "transport/wire/arp.h"

namespace ztcp::tcp::test {
namespace {

constexpr MacAddress kMovedMac{{0x02, 0, 0, 0, 0, 3}};
constexpr MacAddress kForgerMac{{0x02, 0, 0, 0, 0, 0x66}};
constexpr std::size_t kEthernetSourceAt = 6;
constexpr std::size_t kArpSenderMacAt = wire::kEthernetBytes + 8;

class Lan : public testing::Test {
 protected:
  Lan() : left(test_config(), {1, 2}), right(right_config(), {3, 4}) {
    EXPECT_TRUE(left.listen(kListenPort, left_server));
    EXPECT_TRUE(right.listen(kListenPort, right_server));
    std::vector<TxFrame> out(8);
    // The announcements are lost.
    left.collect(now, out);
    right.collect(now, out);
  }

  void connect(Stack& from, User& user, Ipv4Address to) {
    const auto stream = from.connect(now, {to, kListenPort}, user);
    ASSERT_TRUE(stream);
    user.stream = *stream;
  }
  // They have had a connection, which is over.
  void meet() {
    User user;
    connect(left, user, kPeerIp);
    ASSERT_TRUE(run_until([&] { return user.opened; }, 100ms));
    user.stream->abort();
    right_server = {};
    run_for(2s);
  }
  // From now on the right host has this MAC. It does not announce it.
  void move(const MacAddress& to) { right_mac = to; }

  bool run_until(const std::function<bool()>& done, Duration limit) {
    const TimePoint end = now + limit;
    for (;;) {
      pump();
      if (done()) return true;
      const TimePoint next = std::min(left.next_deadline(), right.next_deadline());
      if (next > end) {
        now = end;
        return false;
      }
      now = std::max(now, next);
      left.on_timers(now);
      right.on_timers(now);
    }
  }
  void run_for(Duration span) {
    EXPECT_FALSE(run_until([] { return false; }, span));
  }
  void pump() {
    for (bool busy = true; busy;) {
      now += 10us;
      busy = turn(left, true);
      now += 10us;
      busy = turn(right, false) || busy;
    }
  }

  void inject(Stack& to, Bytes bytes) {
    auto& memory = memory_.emplace_back(std::move(bytes));
    RxFrame view;
    view.head = memory;
    view.handle = &memory;
    view.charge_bytes = 2048;
    to.on_frames(now, std::span(&view, 1));
  }
  // A stranger's frame to the left host in the right one's name.
  void forge_syn(const MacAddress& source) {
    auto syn = frame_from_peer({.flags = wire::kSyn, .seq = 1, .options = offer()}, kListenPort,
                               kPeerPort);
    put_mac(syn->bytes, kEthernetSourceAt, source);
    inject(left, syn->bytes);
  }
  void forge_arp(wire::ArpOperation operation, Ipv4Address target) {
    Bytes bytes(wire::kEthernetBytes + wire::kArpBytes);
    wire::emit_ethernet({kBroadcastMac, kForgerMac, 0, wire::EtherType::kArp}, bytes.data());
    wire::emit_arp({operation, kForgerMac, kPeerIp, {}, target},
                   bytes.data() + wire::kEthernetBytes);
    inject(left, bytes);
  }
  // The right host's announcement, as sent at boot, by a failover daemon or by a hypervisor.
  void announce() {
    Bytes bytes(wire::kEthernetBytes + wire::kArpBytes);
    wire::emit_ethernet({kBroadcastMac, right_mac, 0, wire::EtherType::kArp}, bytes.data());
    wire::emit_arp({wire::ArpOperation::kRequest, right_mac, kPeerIp, {}, kPeerIp},
                   bytes.data() + wire::kEthernetBytes);
    inject(left, bytes);
  }

  TimePoint now = at(0s);
  Stack left;
  Stack right;
  User left_server;
  User right_server;
  User client;
  MacAddress right_mac = kPeerMac;
  bool cut = false;
  int strays = 0;    // Frames to a MAC without a host.
  int left_arp = 0;  // The left host's.

 private:
  static void put_mac(Bytes& bytes, std::size_t at, const MacAddress& mac) {
    std::memcpy(bytes.data() + at, mac.bytes.data(), mac.bytes.size());
  }
  static MacAddress mac_at(const Bytes& bytes, std::size_t at) {
    MacAddress mac;
    std::memcpy(mac.bytes.data(), bytes.data() + at, mac.bytes.size());
    return mac;
  }

  bool turn(Stack& from, bool from_left) {
    std::vector<TxFrame> out(64);
    const std::size_t count = from.collect(now, out);
    for (std::size_t i = 0; i < count; ++i) {
      Bytes bytes(out[i].header.begin(), out[i].header.begin() + out[i].header_bytes);
      for (std::size_t f = 0; f < out[i].fragment_count; ++f)
        bytes.insert(bytes.end(), out[i].fragments[f].data,
                     out[i].fragments[f].data + out[i].fragments[f].size_bytes);
      if (cut) continue;
      const MacAddress to = mac_at(bytes, 0);
      if (from_left) {
        left_arp += out[i].l3_bytes == 0 ? 1 : 0;
        if (to != right_mac && to != kBroadcastMac) {
          ++strays;
          continue;
        }
        if (to == right_mac) put_mac(bytes, 0, kPeerMac);
        inject(right, std::move(bytes));
      } else {
        put_mac(bytes, kEthernetSourceAt, right_mac);
        if (out[i].l3_bytes == 0) put_mac(bytes, kArpSenderMacAt, right_mac);
        inject(left, std::move(bytes));
      }
    }
    std::array<RxFrame, 8> released;
    while (left.take_released(released) + right.take_released(released) > 0) {
    }
    return count > 0;
  }

  std::deque<Bytes> memory_;
};

TEST_F(Lan, ASynReachesAPeerThatMoved) {
  meet();
  move(kMovedMac);
  const TimePoint begin = now;
  connect(left, client, kPeerIp);
  EXPECT_TRUE(run_until([&] { return client.opened; }, 20s)) << "RFC 1122 section 2.3.2.1";
  EXPECT_LT(in_ms(now - begin), 1000);
  EXPECT_GT(strays, 0);
  EXPECT_EQ(left.counters().arp_mac_changes, 1U);
}

TEST_F(Lan, ASynAckReachesAPeerThatMoved) {
  meet();
  move(kMovedMac);
  const TimePoint begin = now;
  connect(right, client, kOurIp);
  EXPECT_TRUE(run_until([&] { return client.opened && left_server.opened; }, 20s));
  EXPECT_LT(in_ms(now - begin), 1000);
}

// The move happens between SYN and SYN-ACK, so that only the repeated SYN-ACK can tell.
TEST_F(Lan, ARepeatedSynAckRepeatsTheLookup) {
  meet();
  forge_syn(kPeerMac);
  move(kMovedMac);
  left_arp = 0;
  run_for(3s);
  EXPECT_GT(left_arp, 0);
  EXPECT_EQ(left.counters().arp_mac_changes, 1U);
}

TEST_F(Lan, ALinkMayComeUpLate) {
  cut = true;
  const TimePoint begin = now;
  connect(left, client, kPeerIp);
  EXPECT_FALSE(run_until([&] { return client.failed.has_value(); }, 8s));
  cut = false;
  EXPECT_TRUE(run_until([&] { return client.opened; }, 20s));
  EXPECT_LT(in_ms(now - begin), 9100) << "asked once a second";
}

TEST_F(Lan, TheConnectTimeoutDecides) {
  cut = true;
  const TimePoint begin = now;
  connect(left, client, kPeerIp);
  ASSERT_TRUE(run_until([&] { return client.failed.has_value(); }, 60s));
  EXPECT_EQ(client.failed->code, Errc::kNoRoute) << "it is not the SYN that was not answered";
  EXPECT_NEAR(in_ms(now - begin), 20'000, 1);
  EXPECT_EQ(left.counters().arp_unresolved, 1U);
  run_for(10s);
  EXPECT_EQ(left.next_deadline(), kNever) << "no lookup is pending any more";
}

TEST_F(Lan, AForgedSynDoesNotStopAConnect) {
  forge_syn(kForgerMac);
  pump();
  EXPECT_EQ(strays, 1) << "where it came from it is answered";
  connect(left, client, kPeerIp);
  EXPECT_TRUE(run_until([&] { return client.opened; }, 10ms));
}

TEST_F(Lan, AForgedArpRequestDoesNotStopAConnect) {
  forge_arp(wire::ArpOperation::kRequest, kOurIp);
  forge_arp(wire::ArpOperation::kReply, kOurIp);
  connect(left, client, kPeerIp);
  EXPECT_TRUE(run_until([&] { return client.opened; }, 10ms));
}

TEST_F(Lan, AFloodOfForgedSynsEvictsNeitherNeighboursNorConnections) {
  meet();
  User old;
  connect(left, old, kPeerIp);
  ASSERT_TRUE(run_until([&] { return old.opened; }, 10ms));
  for (int i = 0; i < 2000; ++i) {
    forge_syn(kForgerMac);
    forge_arp(wire::ArpOperation::kReply, kPeerIp);
    forge_arp(wire::ArpOperation::kRequest, kPeerIp);
    run_for(1ms);
  }
  connect(left, client, kPeerIp);
  EXPECT_TRUE(run_until([&] { return client.opened; }, 10ms));
  EXPECT_FALSE(old.failed);
  EXPECT_EQ(left.counters().arp_mac_changes, 0U);
  EXPECT_GE(left.counters().arp_conflicts, 3U);
  EXPECT_LE(left.counters().arp_conflicts, 5U) << "two a second";
}

TEST_F(Lan, AStrangersConnectionIsCheckedByArp) {
  connect(right, client, kOurIp);
  ASSERT_TRUE(run_until([&] { return left_server.opened; }, 10ms));
  pump();
  // It is proven now, so a claim does not pass without a check of the neighbour.
  forge_arp(wire::ArpOperation::kRequest, kPeerIp);
  run_for(1s);
  EXPECT_EQ(left.counters().arp_conflicts, 1U);
}

TEST_F(Lan, AConnectionFollowsAnAnnouncedMove) {
  connect(left, client, kPeerIp);
  ASSERT_TRUE(run_until([&] { return client.opened; }, 10ms));
  run_for(1s);
  move(kMovedMac);
  announce();
  const TimePoint begin = now;
  ASSERT_TRUE(run_until([&] { return left.counters().arp_mac_changes == 1; }, 2s));
  EXPECT_LT(in_ms(now - begin), 1000);
  const int before = strays;
  const Bytes data = pattern(100);
  ASSERT_TRUE(client.stream->write(data, {}));
  EXPECT_TRUE(run_until([&] { return client.acked == 100; }, 10ms));
  EXPECT_EQ(strays, before);
}

TEST_F(Lan, ASenderFollowsASilentMove) {
  connect(left, client, kPeerIp);
  ASSERT_TRUE(run_until([&] { return client.opened; }, 10ms));
  run_for(1s);
  move(kMovedMac);
  const TimePoint begin = now;
  const Bytes data = pattern(100);
  ASSERT_TRUE(client.stream->write(data, {}));
  EXPECT_TRUE(run_until([&] { return client.acked == 100; }, 8s));
  EXPECT_LT(in_ms(now - begin), 1000);
}

// A receiver that only acknowledges has no timeout; the peer repeats its data.
TEST_F(Lan, AReceiverFollowsASilentMove) {
  connect(right, client, kOurIp);
  ASSERT_TRUE(run_until([&] { return left_server.opened; }, 10ms));
  run_for(1s);
  move(kMovedMac);
  const TimePoint begin = now;
  const Bytes data = pattern(100);
  ASSERT_TRUE(client.stream->write(data, {}));
  EXPECT_TRUE(run_until([&] { return client.acked == 100; }, 8s));
  EXPECT_LT(in_ms(now - begin), 1000);
}

// An idle connection has none either: it only sends keepalives.
TEST_F(Lan, AnIdleConnectionFollowsASilentMove) {
  connect(left, client, kPeerIp);
  ASSERT_TRUE(run_until([&] { return client.opened; }, 10ms));
  run_for(1s);
  move(kMovedMac);
  run_for(60s);
  EXPECT_FALSE(client.failed);
  EXPECT_EQ(left.counters().arp_mac_changes, 1U);
}

TEST_F(Lan, AFrameFromAGroupAddressIsNotAnswered) {
  forge_syn(kBroadcastMac);
  forge_syn(MacAddress{{1, 0, 0x5e, 0, 0, 1}});
  forge_syn(MacAddress{});
  std::vector<TxFrame> out(8);
  EXPECT_EQ(left.collect(now, out), 0U);
  EXPECT_EQ(left.counters().rx_malformed, 3U);
}

// Each reason to doubt an answer of ARP (RFC 1122 section 2.3.2.1), alone: between two Stacks one
// side's doubt would hide a missing one of the other's.
class Doubt : public testing::Test {
 protected:
  Doubt() {
    wire::TcpOptions options = offer();
    options.timestamps.reset();
    peer.open(options);
    peer.advance(1s);
    asked = peer.arp_requests;
  }
  // Time until it asks while the peer is silent.
  Duration wait() {
    const TimePoint begin = peer.now;
    while (peer.arp_requests == asked && peer.fire()) peer.collect();
    EXPECT_FALSE(peer.user.failed);
    return peer.now - begin;
  }
  void arrives_from(const MacAddress& mac, const Seg& seg, std::uint16_t port) {
    auto frame = frame_from_peer(seg, port, peer.peer_port);
    std::memcpy(frame->bytes.data() + kEthernetSourceAt, mac.bytes.data(), mac.bytes.size());
    peer.stack.on_frames(peer.now, std::span(&frame->view, 1));
    peer.collect();
  }
  Peer peer;
  int asked = 0;
};

TEST_F(Doubt, IsRaisedByAnUnansweredKeepalive) {
  const TcpSettings& settings = peer.config.tcp;
  EXPECT_LE(wait(), settings.keepalive_idle + settings.keepalive_interval + 100ms);
}

TEST_F(Doubt, IsRaisedByAnUnansweredWindowProbe) {
  peer.send({.seq = peer.peer_nxt(), .ack = peer.first(), .window = 0});
  peer.write(100);
  peer.collect();
  EXPECT_LT(wait(), peer.config.tcp.keepalive_idle);
}

TEST_F(Doubt, IsRaisedByRepeatedDataFromAnotherMac) {
  const Seg data{.seq = peer.peer_first(), .ack = peer.first(), .payload = pattern(100)};
  arrives_from(kPeerMac, data, peer.our_port);
  arrives_from(kPeerMac, data, peer.our_port);
  EXPECT_EQ(peer.arp_requests, asked);
  arrives_from(kMovedMac, data, peer.our_port);
  EXPECT_EQ(peer.arp_requests, asked + 1);
}

TEST_F(Doubt, IsRaisedByASynFromAnotherMac) {
  ASSERT_TRUE(peer.stack.listen(kListenPort, peer.user));
  const Seg syn{.flags = wire::kSyn, .seq = 1, .options = offer()};
  arrives_from(kPeerMac, syn, kListenPort);
  EXPECT_EQ(peer.arp_requests, asked);
  peer.peer_port = kPeerPort + 1;
  arrives_from(kMovedMac, syn, kListenPort);
  EXPECT_EQ(peer.arp_requests, asked + 1);
}

}  // namespace
}  // namespace ztcp::tcp::test
