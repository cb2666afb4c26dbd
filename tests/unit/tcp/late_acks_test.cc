// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A peer that delays acknowledgements: late segments are not lost.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp::test {
namespace {

class LateAcks : public testing::Test {
 protected:
  static StackConfig make_config() {
    StackConfig config = test_config();
    config.tcp.pacing = false;
    return config;
  }
  void open(const wire::TcpOptions& options = offer()) {
    peer.open(options);
    for (std::uint32_t i = 0; i < 40; ++i) {  // A steady path of 1 ms.
      peer.write(kMss);
      ASSERT_EQ(peer.collect().size(), 1U);
      peer.advance(1ms);
      peer.ack(peer.first() + ++base * kMss);
      peer.collect();
    }
    peer.user.stream->expect_late_acks();
  }
  // From `now` to the first unsolicited frame.
  Duration wait_for_frame() {
    const TimePoint sent = peer.now;
    EXPECT_FALSE(peer.wait().empty());
    return peer.now - sent;
  }
  const Counters& counters() const { return peer.stack.counters(); }
  Duration delay() const { return peer.config.tcp.late_ack_delay; }

  Peer peer{make_config()};
  std::uint32_t base = 0;
};

TEST_F(LateAcks, ALoneSegmentMayWaitForItsAnswer) {
  open();
  peer.write(100);
  ASSERT_EQ(peer.collect().size(), 1U);
  const Duration waited = wait_for_frame();
  EXPECT_GE(waited, delay());
  EXPECT_LE(waited, delay() + 10ms);
  EXPECT_EQ(counters().tlp_fired, 1U);
  EXPECT_EQ(counters().rto_fired, 0U);
}

// Likewise several segments that together are no larger than a full one.
TEST_F(LateAcks, AFewSmallSegmentsMayWaitForTheirAnswer) {
  open();
  for (int i = 0; i < 3; ++i) {
    peer.write(100);
    ASSERT_EQ(peer.collect().size(), 1U);
  }
  EXPECT_GE(wait_for_frame(), delay());
}

// RFC 9293 SHLD-19: every second full segment is answered at once.
TEST_F(LateAcks, ALongerTailIsProbedWithoutDelay) {
  open();
  peer.write(2 * kMss);
  ASSERT_EQ(peer.collect().size(), 2U);
  EXPECT_LE(wait_for_frame(), 10ms);
  EXPECT_EQ(counters().tlp_fired, 1U);
}

TEST_F(LateAcks, TheTimeoutIncludesTheDelay) {
  wire::TcpOptions plain = offer();
  plain.sack_permitted = false;  // A peer without SACK is not probed.
  open(plain);
  peer.write(100);
  ASSERT_EQ(peer.collect().size(), 1U);
  const Duration waited = wait_for_frame();
  EXPECT_EQ(counters().rto_fired, 1U);
  EXPECT_GE(waited, delay() + peer.config.tcp.rto_min);
  EXPECT_LE(waited, delay() + peer.config.tcp.rto_min + 5ms);
}

// The slot is reused by a connection to another peer.
TEST_F(LateAcks, TheNextConnectionInTheSlotIsNotAffected) {
  open();
  peer.user.stream->abort();
  peer.collect();
  peer.user = {};
  base = 0;
  peer.peer_sent = 0;
  peer.open();
  peer.write(100);
  ASSERT_EQ(peer.collect().size(), 1U);
  EXPECT_LE(wait_for_frame(), 10ms);
}

}  // namespace
}  // namespace ztcp::tcp::test
