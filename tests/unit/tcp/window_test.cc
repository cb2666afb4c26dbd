// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How much a sender has in flight against a hand-driven peer: what makes the congestion window
// grow and what doesn't.
#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {
namespace {

constexpr std::uint32_t kMss = 1448;

class Window : public testing::Test {
 protected:
  Window() : peer(make_config()) { peer.open(); }
  static StackConfig make_config() {
    StackConfig config = test_config();
    config.tcp.pacing = false;
    return config;
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * kMss; }
  // One burst with an ACK for each of the segments [begin, end).
  void ack_each(std::uint32_t begin, std::uint32_t end) {
    std::vector<Seg> acks;
    for (std::uint32_t i = begin; i < end; ++i)
      acks.push_back({.seq = peer.peer_nxt(), .ack = seq(i + 1)});
    peer.send_burst(acks);
  }

  Peer peer;
};

// RFC 5681 section 3.1: a segment more for each one acknowledged, however many ACKs arrive at once.
TEST_F(Window, DoublesThoughTheAcksComeInOneBurst) {
  std::uint32_t sent = 0;
  for (std::uint32_t window = 10; window <= 80; window *= 2) {
    peer.write(window * kMss);
    ASSERT_EQ(peer.collect().size(), window);
    peer.write(kMss);  // Held back by the window.
    ASSERT_TRUE(peer.collect().empty());
    peer.advance(1ms);
    ack_each(sent, sent + window);
    sent += window;
    ASSERT_EQ(peer.collect().size(), 1U);
    peer.advance(1ms);
    ack_each(sent, sent + 1);
    ++sent;
  }
}

// Section 4.1's concern: what the user did not fill says nothing about the path.
TEST_F(Window, DoesNotGrowByAcksOfWhatDidNotFillIt) {
  peer.write(12 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  ack_each(0, 10);  // Filled the window: 20 now.
  ASSERT_EQ(peer.collect().size(), 2U);
  for (std::uint32_t sent = 12; sent < 60; sent += 8) {
    peer.advance(1ms);
    ack_each(sent - (sent == 12 ? 2 : 8), sent);
    peer.write(8 * kMss);
    ASSERT_EQ(peer.collect().size(), 8U);
  }
  peer.advance(1ms);
  ack_each(52, 60);
  peer.write(40 * kMss);
  EXPECT_EQ(peer.collect().size(), 20U);
}

}  // namespace
}  // namespace ztcp::tcp::test
