// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Explicit congestion notification (RFC 3168): its agreement, marks in both directions, and what is
// never ECN-capable.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"
#include "tests/unit/tcp/sending.h"

namespace ztcp::tcp::test {
namespace {

using wire::Ecn;
using wire::kAck;
using wire::kCwr;
using wire::kEce;
using wire::kSyn;

constexpr wire::TcpFlags kEcnFlags = kEce | kCwr;

wire::TcpFlags ecn_flags(const Seg& seg) { return seg.flags & kEcnFlags; }

class EcnPeer : public testing::Test {
 protected:
  explicit EcnPeer(bool is_wanted = true) : peer(make_config(is_wanted)) {}
  static StackConfig make_config(bool is_wanted) {
    StackConfig config = test_config();
    config.tcp.pacing = false;
    config.tcp.ecn = is_wanted;
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
  // The answer of a peer that speaks ECN, or whatever `flags` says; then a first ACK is sent.
  void answer(wire::TcpFlags flags) {
    wire::TcpOptions options = offer();
    options.timestamps = wire::Timestamps{peer.timestamp(), peer.last_ts};
    peer.advance(kRoundTrip);
    peer.send(
        {.flags = kSyn | kAck | flags, .seq = peer.irs, .ack = peer.first(), .options = options});
    ASSERT_TRUE(peer.user.opened);
    for (const Seg& seg : peer.collect()) {
      if (seg.payload.size() > 1)
        peer.ack(peer.first(),
                 {{peer.first() - static_cast<std::uint32_t>(seg.payload.size()), peer.first()}});
    }
    peer.collect();
  }
  void open() {
    connect();
    answer(kEce);
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * kMss; }
  void send_ack(std::uint32_t ack, wire::TcpFlags flags = {}) {
    peer.send({.flags = kAck | flags, .seq = peer.peer_nxt(), .ack = ack});
  }
  // Data of the peer, with a codepoint and flags; returns our answer.
  Seg send_data(Ecn ecn, wire::TcpFlags flags = {}) {
    peer.send({.flags = kAck | flags,
               .seq = peer.peer_nxt(),
               .ack = peer.first(),
               .payload = pattern(100),
               .ecn = ecn});
    peer.peer_sent += 100;
    return peer.collect_one();
  }
  const Counters& counters() const { return peer.stack.counters(); }

  Peer peer;
};

class EcnAgreement : public EcnPeer {};

TEST_F(EcnAgreement, OurSynAsksAndIsNotCapableItself) {
  const Seg syn = connect();
  EXPECT_EQ(ecn_flags(syn), kEcnFlags);
  EXPECT_EQ(syn.ecn, Ecn::kNotCapable);
}

TEST_F(EcnAgreement, NewDataIsCapableOnceThePeerAgrees) {
  open();
  peer.write(2 * kMss);
  for (const Seg& seg : peer.collect()) EXPECT_EQ(seg.ecn, Ecn::kEct0);
}

TEST_F(EcnAgreement, APeerWithoutEcnGetsNone) {
  connect();
  answer({});
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
  EXPECT_EQ(send_data(Ecn::kCongestion).flags, kAck);
}

// RFC 3168 section 6.1.1: some peers return the reserved bits of a SYN as they were.
TEST_F(EcnAgreement, APeerThatReturnsBothFlagsHasNoEcn) {
  connect();
  answer(kEcnFlags);
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

// Section 6.1.1.1: something on the path may drop SYNs with these flags.
TEST_F(EcnAgreement, TheSecondRepeatedSynGoesWithout) {
  connect();
  EXPECT_EQ(ecn_flags(peer.wait().at(0)), kEcnFlags);
  EXPECT_EQ(ecn_flags(peer.wait().at(0)), wire::TcpFlags{});
  EXPECT_EQ(ecn_flags(peer.wait().at(0)), wire::TcpFlags{});
  answer(kEce);  // To an earlier one; the peer has seen the last.
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

class PassiveEcn : public EcnPeer {
 protected:
  PassiveEcn() { peer.our_port = kListenPort; }
  Seg ask(wire::TcpFlags flags) {
    if (!listens_) {
      EXPECT_TRUE(peer.stack.listen(kListenPort, peer.user));
    }
    listens_ = true;
    peer.send({.flags = kSyn | flags, .seq = peer.irs, .options = offer()});
    const Seg answer = peer.collect_one();
    peer.iss = answer.seq;
    return answer;
  }
  void finish_handshake() {
    peer.send({.seq = peer.peer_first(), .ack = peer.first()});
    ASSERT_TRUE(peer.user.opened);
    peer.collect();
  }

 private:
  bool listens_ = false;
};

TEST_F(PassiveEcn, ASynThatAsksIsAnsweredWithEce) {
  const Seg answer = ask(kEcnFlags);
  EXPECT_EQ(ecn_flags(answer), kEce);
  EXPECT_EQ(answer.ecn, Ecn::kNotCapable);
  finish_handshake();
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kEct0);
}

TEST_F(PassiveEcn, APlainSynIsAnsweredPlainly) {
  EXPECT_EQ(ecn_flags(ask({})), wire::TcpFlags{});
  finish_handshake();
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

TEST_F(PassiveEcn, ThePeersPlainRepetitionCounts) {
  EXPECT_EQ(ecn_flags(ask(kEcnFlags)), kEce);
  EXPECT_EQ(ecn_flags(ask({})), wire::TcpFlags{});
  finish_handshake();
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

TEST_F(PassiveEcn, TheSecondRepeatedSynAckGoesWithout) {
  EXPECT_EQ(ecn_flags(ask(kEcnFlags)), kEce);
  EXPECT_EQ(ecn_flags(peer.wait().at(0)), kEce);
  EXPECT_EQ(ecn_flags(peer.wait().at(0)), wire::TcpFlags{});
  finish_handshake();
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

class EcnOff : public EcnPeer {
 protected:
  EcnOff() : EcnPeer(false) {}
};

TEST_F(EcnOff, IsNeitherOfferedNorAccepted) {
  EXPECT_EQ(ecn_flags(connect()), wire::TcpFlags{});
  answer(kEce);
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
  EXPECT_EQ(send_data(Ecn::kCongestion).flags & kEcnFlags, wire::TcpFlags{});
}

class EcnReceiver : public EcnPeer {
 protected:
  EcnReceiver() { open(); }
};

TEST_F(EcnReceiver, AMarkIsEchoedUntilCwr) {
  EXPECT_EQ(ecn_flags(send_data(Ecn::kEct0)), wire::TcpFlags{});
  EXPECT_EQ(ecn_flags(send_data(Ecn::kCongestion)), kEce);
  EXPECT_EQ(ecn_flags(send_data(Ecn::kEct0)), kEce);
  EXPECT_EQ(ecn_flags(send_data(Ecn::kEct0, kCwr)), wire::TcpFlags{});
  EXPECT_EQ(counters().rx_ce_segments, 1U);
}

TEST_F(EcnReceiver, AMarkOnTheSegmentWithCwrIsEchoed) {
  EXPECT_EQ(ecn_flags(send_data(Ecn::kCongestion)), kEce);
  EXPECT_EQ(ecn_flags(send_data(Ecn::kCongestion, kCwr)), kEce);
}

// Section 6.1.5: a segment outside the window may be an attacker's.
TEST_F(EcnReceiver, AMarkOnAnOldDuplicateIsIgnored) {
  send_data(Ecn::kEct0);
  peer.peer_sent -= 100;
  EXPECT_EQ(ecn_flags(send_data(Ecn::kCongestion)), wire::TcpFlags{});
}

// A peer that never sends CWR costs a flag, no more.
TEST_F(EcnReceiver, APeerWithoutCwrIsServedAllTheSame) {
  send_data(Ecn::kCongestion);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ecn_flags(send_data(Ecn::kEct0)), kEce);
  EXPECT_EQ(peer.user.received.size(), 100'100U);
}

class EcnSender : public EcnPeer {
 protected:
  EcnSender() { open(); }
  std::uint32_t window() const {
    std::uint32_t cwnd = 0;
    peer.stack.for_each_connection([&](const ConnectionStatistics& s) { cwnd = s.cwnd_bytes; });
    return cwnd;
  }
};

TEST_F(EcnSender, BareAcksAndRetransmissionsAreNotCapable) {
  EXPECT_EQ(send_data(Ecn::kEct0).ecn, Ecn::kNotCapable);
  peer.write(5 * kMss);
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(0), {{seq(1), seq(5)}});
  const auto again = bulk(peer.collect());
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].seq, seq(0));
  EXPECT_EQ(again[0].ecn, Ecn::kNotCapable);
}

TEST_F(EcnSender, MarksReduceTheWindowOncePerWindowOfData) {
  peer.write(100 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  const std::uint32_t before = window();
  peer.advance(1ms);
  send_ack(seq(2), kEce);
  // The first slow start ends as for a loss.
  EXPECT_EQ(window(), static_cast<std::uint32_t>(before * 0.7));
  EXPECT_EQ(counters().ecn_reductions, 1U);
  send_ack(seq(4), kEce);
  send_ack(seq(10), kEce);
  EXPECT_EQ(counters().ecn_reductions, 1U) << "marks of the same window of data";
  EXPECT_EQ(counters().ecn_echoes, 3U);
  const std::uint32_t reduced = window();
  const auto next = peer.collect();
  ASSERT_GE(next.size(), 2U);
  EXPECT_EQ(ecn_flags(next[0]), kCwr);
  EXPECT_EQ(ecn_flags(next[1]), wire::TcpFlags{});
  peer.advance(1ms);
  send_ack(seq(12), kEce);
  EXPECT_EQ(counters().ecn_reductions, 2U);
  EXPECT_EQ(window(), static_cast<std::uint32_t>(reduced / kMss * 0.85 * kMss)) << "RFC 8511";
}

TEST_F(EcnSender, AMarkAndALossOfOneWindowReduceItOnce) {
  peer.write(100 * kMss);
  peer.collect();
  peer.advance(1ms);
  Seg report{.flags = kAck | kEce, .seq = peer.peer_nxt(), .ack = seq(0)};
  report.options.sack[0] = {seq(1), seq(10)};
  report.options.sack_count = 1;
  peer.send(report);
  EXPECT_EQ(counters().rack_recoveries, 1U);
  EXPECT_EQ(counters().ecn_reductions, 0U);
  const auto sent = bulk(peer.collect());
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(ecn_flags(sent[0]), wire::TcpFlags{}) << "CWR belongs on new data";
  peer.advance(1ms);
  send_ack(seq(10), kEce);
  EXPECT_EQ(counters().ecn_reductions, 0U);
}

}  // namespace
}  // namespace ztcp::tcp::test
