// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Classic explicit congestion notification (RFC 3168): its agreement, marks in both directions, and
// the segments that are never ECN-capable.
#include <gtest/gtest.h>

#include "tests/unit/tcp/ecn_peer.h"
#include "tests/unit/tcp/sending.h"

namespace ztcp::tcp::test {
namespace {

using wire::Ecn;
using wire::kAck;
using wire::kCwr;
using wire::kEce;
using wire::kSyn;

constexpr wire::TcpFlags kEcnFlags = wire::kAe | kEce | kCwr;
constexpr wire::TcpFlags kClassicSyn = kEce | kCwr;

wire::TcpFlags ecn_flags(const Seg& seg) { return seg.flags & kEcnFlags; }

class EcnAgreement : public EcnPeer {};

TEST_F(EcnAgreement, OurSynAsksAndIsNotCapableItself) {
  const Seg syn = connect();
  EXPECT_EQ(ecn_flags(syn), kEcnFlags);
  EXPECT_EQ(syn.ecn, Ecn::kNotCapable);
}

TEST_F(EcnAgreement, NewDataIsCapableOnceThePeerAgrees) {
  connect();
  answer(kEce);
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

TEST_F(PassiveEcn, ASynThatAsksIsAnsweredWithEce) {
  const Seg answer = ask(kClassicSyn);
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
  EXPECT_EQ(ecn_flags(ask(kClassicSyn)), kEce);
  EXPECT_EQ(ecn_flags(ask({})), wire::TcpFlags{});
  finish_handshake();
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

TEST_F(PassiveEcn, TheSecondRepeatedSynAckGoesWithout) {
  EXPECT_EQ(ecn_flags(ask(kClassicSyn)), kEce);
  EXPECT_EQ(ecn_flags(peer.wait().at(0)), kEce);
  EXPECT_EQ(ecn_flags(peer.wait().at(0)), wire::TcpFlags{});
  finish_handshake();
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

class EcnOff : public EcnPeer {
 protected:
  EcnOff() : EcnPeer({.ecn = false}) {}
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
  EcnReceiver() {
    connect();
    answer(kEce);
  }
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
  EcnSender() {
    connect();
    answer(kEce);
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
