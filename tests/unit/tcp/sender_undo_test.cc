// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Undoing reductions of the window after needless retransmissions, against a hand-driven peer.
#include <gtest/gtest.h>

#include "tests/unit/tcp/sending.h"
#include "transport/tcp/sender.h"

namespace ztcp::tcp::test {
namespace {

// Without timestamps only D-SACKs show that a recovery was needless (RFC 3708).
class Needless : public testing::Test {
 protected:
  Needless() : peer(make_config()) {
    wire::TcpOptions options = offer();
    options.timestamps.reset();
    peer.open(options);
    mss = static_cast<std::uint32_t>(peer.mss);
    peer.write(2 * mss);
    peer.collect();
    peer.advance(1ms);
    peer.ack(seq(2));
    peer.write(10 * mss);
    EXPECT_EQ(peer.collect().size(), 10U);
    before = cwnd();
    peer.advance(1ms);
  }
  static StackConfig make_config() {
    StackConfig config = test_config();
    config.tcp.pacing = false;
    return config;
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * mss; }
  std::uint32_t cwnd() const {
    std::uint32_t bytes = 0;
    peer.stack.for_each_connection([&](const auto& s) { bytes = s.cwnd_bytes; });
    return bytes;
  }
  std::uint64_t spurious() const { return peer.stack.counters().spurious_recoveries; }

  Peer peer;
  std::uint32_t mss = 0;
  std::uint32_t before = 0;
};

TEST_F(Needless, RecoveryIsUndoneByDsacksOfAllItsRetransmissions) {
  peer.ack(seq(2), {{seq(4), seq(8)}});
  ASSERT_EQ(bulk(peer.collect()).size(), 2U) << "2 and 3, which are late";
  peer.advance(100us);
  peer.ack(seq(12));
  EXPECT_LT(cwnd(), before);
  peer.ack(seq(12), {{seq(2), seq(3)}});
  EXPECT_EQ(spurious(), 0U) << "one of two";
  peer.ack(seq(12), {{seq(3), seq(4)}});
  EXPECT_EQ(spurious(), 1U);
  EXPECT_GE(cwnd(), before);
  EXPECT_EQ(peer.stack.counters().dsacked_segments, 2U);
}

TEST_F(Needless, RecoveryOfOneRealLossIsNotUndone) {
  peer.ack(seq(2), {{seq(4), seq(8)}});
  ASSERT_EQ(bulk(peer.collect()).size(), 2U);
  peer.advance(1ms);
  peer.ack(seq(12));
  peer.ack(seq(12), {{seq(2), seq(3)}});
  peer.ack(seq(12), {{seq(9), seq(10)}});
  peer.ack(seq(12), {{seq(0), seq(1)}});
  EXPECT_EQ(spurious(), 0U) << "3 was lost; 9 was repeated by the network";
  EXPECT_LT(cwnd(), before);
}

TEST_F(Needless, TimeoutIsUndoneToo) {
  std::vector<Seg> repeats;
  while (peer.stack.counters().rto_fired == 0) {
    ASSERT_TRUE(peer.fire());
    repeats = bulk(peer.collect());
  }
  ASSERT_FALSE(repeats.empty());
  peer.advance(100us);
  peer.ack(seq(12));
  peer.collect();
  for (std::uint32_t i = 2; i < 12; ++i) peer.ack(seq(12), {{seq(i), seq(i + 1)}});
  EXPECT_EQ(spurious(), 1U);
  EXPECT_GE(cwnd(), before);
}

// A window of ten segments is in flight and more wait when the timeout comes.
class Frtos : public Needless {
 protected:
  Frtos() {
    peer.write(12 * mss);
    EXPECT_EQ(peer.collect().size(), 0U);  // The tail probe sends segment 12.
    while (peer.stack.counters().rto_fired == 0 && peer.fire()) repeats = bulk(peer.collect());
    peer.advance(100us);
  }
  // Numbers of the segments that leave now.
  std::vector<std::uint32_t> leaving() {
    std::vector<std::uint32_t> numbers;
    for (const Seg& seg : bulk(peer.collect())) numbers.push_back((seg.seq - peer.first()) / mss);
    return numbers;
  }
  using Numbers = std::vector<std::uint32_t>;

  std::vector<Seg> repeats;
};

TEST_F(Frtos, LateAcksUndoTheTimeoutAndRepeatNothing) {
  ASSERT_EQ(repeats.size(), 1U);
  EXPECT_LT(cwnd(), before);
  peer.ack(seq(3));
  EXPECT_EQ(leaving(), (Numbers{13, 14})) << "new data only";
  peer.ack(seq(4));
  EXPECT_EQ(spurious(), 1U);
  EXPECT_GE(cwnd(), before);
  for (const std::uint32_t number : leaving()) EXPECT_GE(number, 15U);
  EXPECT_EQ(peer.stack.counters().tx_retransmitted_bytes, mss);
}

TEST_F(Frtos, ALateSackIsEnough) {
  peer.ack(seq(3));
  EXPECT_EQ(leaving(), (Numbers{13, 14}));
  peer.ack(seq(3), {{seq(5), seq(6)}});
  EXPECT_EQ(spurious(), 1U) << "4 may be lost; the timeout was too early all the same";
}

TEST_F(Frtos, ARealTimeoutStaysInForce) {
  peer.ack(seq(3));
  EXPECT_EQ(leaving(), (Numbers{13, 14}));
  peer.ack(seq(3), {{seq(13), seq(14)}});
  EXPECT_EQ(spurious(), 0U);
  EXPECT_LT(cwnd(), before);
  const Numbers again = leaving();
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again.front(), 3U);
}

TEST_F(Frtos, AnAckOfEverythingIsNoProof) {
  peer.ack(seq(13));
  EXPECT_EQ(spurious(), 0U) << "only the first was lost, and the ACKs of the others";
  EXPECT_LT(cwnd(), before);
}

TEST_F(Frtos, ASackAloneIsNoProof) {
  peer.ack(seq(2), {{seq(3), seq(4)}});
  peer.ack(seq(4));
  EXPECT_EQ(spurious(), 0U);
}

TEST_F(Frtos, ASecondTimeoutIsNotJudged) {
  while (peer.stack.counters().rto_fired == 1 && peer.fire()) peer.collect();
  peer.ack(seq(3));
  const Numbers next = leaving();
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next.front(), 3U) << "sent again as usual";
  peer.ack(seq(4));
  EXPECT_EQ(spurious(), 0U);
}

TEST_F(Needless, TimeoutWithoutNewDataRepeatsAsUsual) {
  while (peer.stack.counters().rto_fired == 0 && peer.fire()) peer.collect();
  peer.ack(seq(3));
  const auto next = bulk(peer.collect());
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next[0].seq, seq(3)) << "sent again: nothing new could tell";
}

}  // namespace
}  // namespace ztcp::tcp::test
