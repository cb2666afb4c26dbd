// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Accurate ECN (RFC 9768): its agreement, counters in both directions, and paths that change them.
#include <gtest/gtest.h>

#include "tests/unit/tcp/ecn_peer.h"
#include "transport/tcp/dctcp.h"

namespace ztcp::tcp::test {
namespace {

using wire::ace_flags;
using wire::ace_of;
using wire::Ecn;

constexpr unsigned kAsksAccurate = 7;
constexpr unsigned kCameNotCapable = 2;
constexpr unsigned kCameEct0 = 4;
constexpr unsigned kCameMarked = 6;
constexpr unsigned kFirstCount = 5;

class AccurateAgreement : public EcnPeer {};

TEST_F(AccurateAgreement, TheLastAckTellsTheSynAcksCodepointThenCountsFollow) {
  EXPECT_EQ(ace_of(connect().flags), kAsksAccurate);
  EXPECT_EQ(ace_of(answer(ace_flags(kCameNotCapable)).flags), kCameNotCapable);
  EXPECT_EQ(ace_of(send_data(Ecn::kEct0).flags), kFirstCount);
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kEct0);
}

// Section 3.2.2.3: a path that changes the codepoint of a SYN.
TEST_F(AccurateAgreement, AChangedSynEndsOurMarksButNotTheReports) {
  connect();
  answer(ace_flags(kCameEct0));
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
  send_ack(seq(1), ace_flags(kFirstCount + 1));
  EXPECT_EQ(counters().ecn_echoes, 0U);
  EXPECT_EQ(ace_of(send_data(Ecn::kCongestion).flags), kFirstCount + 1);
}

TEST_F(AccurateAgreement, APeerWithClassicEcnGetsThat) {
  connect();
  EXPECT_EQ(ace_of(answer(wire::kEce).flags), 0U);
  EXPECT_EQ(send_data(Ecn::kCongestion).flags, wire::kAck | wire::kEce);
}

class PassiveAccurate : public PassiveEcn {};

TEST_F(PassiveAccurate, TheSynAckTellsTheSynsCodepoint) {
  EXPECT_EQ(ace_of(ask(ace_flags(kAsksAccurate)).flags), kCameNotCapable);
  EXPECT_EQ(ace_of(ask(ace_flags(kAsksAccurate), Ecn::kCongestion).flags), kCameMarked);
  finish_handshake(ace_flags(kCameNotCapable));
  peer.write(kMss);
  const Seg data = peer.collect_one();
  EXPECT_EQ(data.ecn, Ecn::kEct0);
  EXPECT_EQ(ace_of(data.flags), kFirstCount + 1) << "the marked SYN counts";
}

// Section 3.2.2.4: a path that clears the flags.
TEST_F(PassiveAccurate, ALastAckWithoutFlagsEndsOurMarks) {
  ask(ace_flags(kAsksAccurate));
  finish_handshake();
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kNotCapable);
}

TEST_F(PassiveAccurate, DataMayOvertakeTheLastAck) {
  ask(ace_flags(kAsksAccurate));
  finish_handshake(ace_flags(kFirstCount));
  peer.write(kMss);
  EXPECT_EQ(peer.collect_one().ecn, Ecn::kEct0);
}

class AccurateReceiver : public EcnPeer {
 protected:
  AccurateReceiver() {
    connect();
    answer(ace_flags(kCameNotCapable));
  }
  Seg data(std::uint32_t at, Ecn ecn) {
    return {.flags = wire::kAck,
            .seq = peer.peer_first() + at,
            .ack = peer.first(),
            .payload = pattern(100),
            .ecn = ecn};
  }
};

TEST_F(AccurateReceiver, AnAckAfterMarksCountsThem) {
  EXPECT_FALSE(send_data(Ecn::kEct0).options.ecn_bytes);
  std::vector<Seg> burst;
  for (std::uint32_t i = 1; i <= 12; ++i)
    burst.push_back(data(i * 100, i <= 9 ? Ecn::kCongestion : Ecn::kEct0));
  peer.send_burst(burst);
  const Seg report = peer.collect_one();
  EXPECT_EQ(report.ack, peer.peer_first() + 1300);
  EXPECT_EQ(ace_of(report.flags), (kFirstCount + 9) % 8);
  EXPECT_EQ(report.options.ecn_bytes, (wire::EcnBytes{.ect0 = 401, .ce = 900, .ect1 = 1}));
  peer.peer_sent = 1300;
  EXPECT_FALSE(send_data(Ecn::kEct0).options.ecn_bytes) << "nothing new";
}

// While data flows the other way, too, a bare ACK carries the counters.
TEST_F(AccurateReceiver, MarksAreReportedBesideOurOwnData) {
  peer.write(10 * kMss);
  peer.send(data(0, Ecn::kCongestion));
  const auto sent = peer.collect();
  ASSERT_GE(sent.size(), 2U);
  EXPECT_TRUE(sent[0].payload.empty());
  EXPECT_EQ(sent[0].options.ecn_bytes->ce, 100U);
  EXPECT_FALSE(sent[1].payload.empty());
  EXPECT_EQ(ace_of(sent[1].flags), kFirstCount + 1);
}

// Section 3.2.3.3: reports of losses take precedence.
TEST_F(AccurateReceiver, CountersWaitForRoomBesideSackBlocks) {
  peer.send_burst({data(200, Ecn::kCongestion), data(400, Ecn::kEct0)});
  const auto two_blocks = peer.collect();
  ASSERT_EQ(two_blocks.size(), 1U);
  EXPECT_EQ(two_blocks[0].options.sack_count, 2);
  EXPECT_EQ(two_blocks[0].options.ecn_bytes, (wire::EcnBytes{.ce = 100, .is_whole = false}));
  peer.send(data(600, Ecn::kCongestion));
  const Seg three_blocks = peer.collect_one();
  EXPECT_EQ(three_blocks.options.sack_count, 3);
  EXPECT_FALSE(three_blocks.options.ecn_bytes);
  peer.send_burst({data(0, Ecn::kEct0), data(100, Ecn::kEct0), data(300, Ecn::kEct0)});
  const auto later = peer.collect();
  ASSERT_FALSE(later.empty());
  EXPECT_EQ(later.back().options.ecn_bytes->ce, 200U);
}

class AccurateSender : public EcnPeer {
 protected:
  AccurateSender() : EcnPeer({.congestion_control_by_marks = make_congestion_control<Dctcp>}) {
    connect();
    answer(ace_flags(kCameNotCapable));
    peer.write(200 * kMss);
    peer.collect();
    peer.advance(1ms);
  }
  void report(std::uint32_t ack, unsigned ace, std::optional<std::uint32_t> ce_bytes) {
    Seg seg{.flags = wire::kAck | ace_flags(ace), .seq = peer.peer_nxt(), .ack = ack};
    if (ce_bytes) seg.options.ecn_bytes = wire::EcnBytes{.ect0 = 1, .ce = *ce_bytes, .ect1 = 1};
    peer.send(seg);
  }
};

TEST_F(AccurateSender, APacketCountReducesTheWindow) {
  const std::uint32_t before = window();
  report(seq(2), kFirstCount, std::nullopt);
  EXPECT_EQ(counters().ecn_echoes, 0U);
  EXPECT_EQ(window(), before + 2 * kMss);
  report(seq(3), kFirstCount + 1, std::nullopt);
  EXPECT_EQ(counters().ecn_reductions, 1U);
  EXPECT_LT(window(), (before + 2 * kMss) * 0.54) << "the first mark of DCTCP nearly halves it";
  report(seq(4), kFirstCount + 2, std::nullopt);
  EXPECT_EQ(counters().ecn_reductions, 1U);
}

TEST_F(AccurateSender, ByteCountsTellOfEightPackets) {
  report(seq(8), kFirstCount, 8 * kMss);
  EXPECT_EQ(counters().ecn_reductions, 1U);
}

TEST_F(AccurateSender, AnAckThatWasOvertakenReportsNothing) {
  report(seq(4), kFirstCount + 2, 2 * kMss);
  EXPECT_EQ(counters().ecn_echoes, 1U);
  report(seq(2), kFirstCount + 1, kMss);
  report(seq(4), kFirstCount + 1, kMss);
  EXPECT_EQ(counters().ecn_echoes, 1U);
}

TEST_F(AccurateSender, AWindowBelowASegmentSendsShortOnes) {
  std::uint32_t acked = seq(10);
  for (std::uint32_t i = 1; i <= 40; ++i) {
    report(acked, (kFirstCount + i) % 8, std::nullopt);
    for (const Seg& seg : peer.collect())
      acked = seg.seq + static_cast<std::uint32_t>(seg.payload.size());
    peer.advance(1ms);
  }
  EXPECT_EQ(window(), 700U);
  report(acked, (kFirstCount + 41) % 8, std::nullopt);
  const Seg next = peer.collect_one();
  EXPECT_EQ(next.payload.size(), 700U);
}

// NICs that cut a peer's super-segment clear CWR in most pieces.
TEST_F(AccurateSender, FlagsOfDataAreNotBelieved) {
  peer.send({.flags = wire::kAck | ace_flags(kFirstCount & ~2U),
             .seq = peer.peer_nxt(),
             .ack = seq(2),
             .payload = pattern(100)});
  EXPECT_EQ(counters().ecn_echoes, 0U);
}

}  // namespace
}  // namespace ztcp::tcp::test
