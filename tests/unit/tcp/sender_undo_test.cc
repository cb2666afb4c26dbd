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

}  // namespace
}  // namespace ztcp::tcp::test
