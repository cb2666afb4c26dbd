// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A connection with a hand-driven peer that speaks ECN.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp::test {

class EcnPeer : public testing::Test {
 protected:
  explicit EcnPeer(const TcpSettings& settings = {}) : peer(make_config(settings)) {}
  static StackConfig make_config(const TcpSettings& settings) {
    StackConfig config = test_config();
    config.tcp = settings;
    config.tcp.pacing = false;
    return config;
  }
  Seg connect() {
    const auto stream = peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user);
    EXPECT_TRUE(stream);
    peer.user.stream = *stream;
    const Seg syn = peer.collect_one();
    peer.iss = syn.seq;
    return syn;
  }
  // The peer's SYN-ACK, and our answer to it.
  Seg answer(wire::TcpFlags flags) {
    wire::TcpOptions options = offer();
    options.timestamps = wire::Timestamps{peer.timestamp(), peer.last_ts};
    peer.advance(kRoundTrip);
    peer.send({.flags = wire::kSyn | wire::kAck | flags,
               .seq = peer.irs,
               .ack = peer.first(),
               .options = options});
    EXPECT_TRUE(peer.user.opened);
    const auto first = peer.collect();
    for (const Seg& seg : first) {
      if (seg.payload.size() > 1)
        peer.ack(peer.first(),
                 {{peer.first() - static_cast<std::uint32_t>(seg.payload.size()), peer.first()}});
    }
    peer.collect();
    return first.at(0);
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * kMss; }
  void send_ack(std::uint32_t ack, wire::TcpFlags flags = {}) {
    peer.send({.flags = wire::kAck | flags, .seq = peer.peer_nxt(), .ack = ack});
  }
  // Data of the peer, with a codepoint and flags; returns our answer.
  Seg send_data(wire::Ecn ecn, wire::TcpFlags flags = {}) {
    peer.send({.flags = wire::kAck | flags,
               .seq = peer.peer_nxt(),
               .ack = peer.first(),
               .payload = pattern(100),
               .ecn = ecn});
    peer.peer_sent += 100;
    return peer.collect_one();
  }
  std::uint32_t window() const {
    std::uint32_t cwnd = 0;
    peer.stack.for_each_connection([&](const ConnectionStatistics& s) { cwnd = s.cwnd_bytes; });
    return cwnd;
  }
  const Counters& counters() const { return peer.stack.counters(); }

  Peer peer;
};

class PassiveEcn : public EcnPeer {
 protected:
  PassiveEcn() { peer.our_port = kListenPort; }
  Seg ask(wire::TcpFlags flags, wire::Ecn ecn = wire::Ecn::kNotCapable) {
    if (!listens_) {
      EXPECT_TRUE(peer.stack.listen(kListenPort, peer.user));
    }
    listens_ = true;
    peer.send({.flags = wire::kSyn | flags, .seq = peer.irs, .options = offer(), .ecn = ecn});
    const Seg answer = peer.collect_one();
    peer.iss = answer.seq;
    return answer;
  }
  void finish_handshake(wire::TcpFlags flags = {}) {
    peer.send({.flags = wire::kAck | flags, .seq = peer.peer_first(), .ack = peer.first()});
    ASSERT_TRUE(peer.user.opened);
    peer.collect();
  }

 private:
  bool listens_ = false;
};

}  // namespace ztcp::tcp::test
