// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Data in flight against a hand-driven peer: events that make the congestion window grow, and
// others that do not.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp::test {
namespace {

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

// RFC 5681 section 3.1: one segment more for each acknowledged one, however many ACKs arrive at
// once.
TEST_F(Window, DoublesWhenTheAcksComeInOneBurst) {
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

// Section 4.1's concern: data that did not fill the window tells nothing about the path.
TEST_F(Window, DoesNotGrowByAcksOfDataThatDidNotFillIt) {
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

// RFC 3042 section 2 and RFC 5681 section 3.2: SACKed bytes have left the path, so as many may
// follow; the window itself stays.
TEST_F(Window, DoesNotGrowBySacksBeforeRecovery) {
  peer.write(30 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  peer.ack(seq(0), {{seq(1), seq(3)}});
  EXPECT_EQ(peer.collect().size(), 2U);
  peer.ack(seq(3));  // It was late. Now all three count.
  EXPECT_EQ(peer.collect().size(), 4U) << "13 less the 9 in flight";
}

// RFC 6937: recovery ends at ssthresh. The ACK that ends it covers a window that was SACKed before.
TEST_F(Window, IsSsthreshAfterRecovery) {
  peer.write(60 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  peer.ack(seq(10));
  ASSERT_EQ(peer.collect().size(), 20U);
  peer.advance(1ms);
  peer.ack(seq(10), {{seq(11), seq(30)}});
  std::uint32_t sent = 30;
  for (const Seg& seg : peer.collect()) sent += seg.seq == seq(10) ? 0 : 1;
  peer.advance(1ms);
  peer.ack(seq(sent));
  EXPECT_EQ(peer.collect().size(), 14U) << "seven tenths of 20";
}

// RFC 5681 section 3.1: slow start ends at ssthresh, also where one ACK covers much.
TEST_F(Window, SlowStartStopsAtSsthresh) {
  peer.write(200 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  ack_each(0, 10);
  ASSERT_EQ(peer.collect().size(), 20U);
  for (int i = 0; peer.stack.counters().rto_fired == 0; ++i) {
    ASSERT_LT(i, 100);
    ASSERT_TRUE(peer.fire());
    peer.collect();
  }
  // All of 20 in flight arrived except the first: ssthresh is 14.
  std::uint32_t una = 10;
  for (int round = 0; una < 34; ++round) {
    ASSERT_LT(round, 20);
    peer.advance(1ms);
    una = std::min<std::uint32_t>(una + (1U << round), 34);
    peer.ack(seq(una));
    std::size_t sent = peer.collect().size();
    EXPECT_LE(sent, 15U) << una;
  }
}

// RFC 9293 section 3.8.6.2.1: a window much smaller than before is not filled at once, even if
// nothing is in flight; the override timeout makes sure that it is filled at all.
TEST_F(Window, TinyWindowIsFilledLate) {
  peer.write(2 * kMss);
  ASSERT_EQ(peer.collect().size(), 2U);
  peer.advance(1ms);
  peer.send({.seq = peer.peer_nxt(), .ack = seq(2), .window = 1});
  peer.write(4 * kMss);
  EXPECT_TRUE(peer.collect().empty());
  const TimePoint begin = peer.now;
  const auto segs = peer.wait();
  ASSERT_EQ(segs.size(), 1U);
  EXPECT_EQ(segs[0].payload.size(), 256U);
  EXPECT_EQ(segs[0].seq, seq(2));
  EXPECT_GE(peer.now - begin, peer.config.tcp.rto_min);
  EXPECT_LE(peer.now - begin, 1s);
  peer.advance(1ms);
  peer.send({.seq = peer.peer_nxt(), .ack = seq(2) + 256, .window = 1});
  EXPECT_TRUE(peer.collect().empty()) << "each time anew";
}

TEST_F(Window, TinyWindowIsUsedAtOnceForTheLastData) {
  peer.send({.seq = peer.peer_nxt(), .ack = seq(0), .window = 1});
  peer.write(256);
  EXPECT_EQ(peer.collect().size(), 1U);
}

TEST_F(Window, TinyWindowThatOpensIsUsedAtOnce) {
  peer.send({.seq = peer.peer_nxt(), .ack = seq(0)});
  peer.send({.seq = peer.peer_nxt(), .ack = seq(0), .window = 1});
  peer.write(4 * kMss);
  EXPECT_TRUE(peer.collect().empty());
  peer.send({.seq = peer.peer_nxt(), .ack = seq(0)});
  EXPECT_EQ(peer.collect().size(), 4U);
  peer.advance(1ms);
  peer.ack(seq(4));
  peer.send({.seq = peer.peer_nxt(), .ack = seq(4), .window = 1});
  peer.write(4 * kMss);
  EXPECT_TRUE(peer.collect().empty()) << "and the override counts anew";
}

// Peers that offer no SACK.
class PlainPeer : public Window {
 protected:
  PlainPeer() : plain(make_config()) {
    wire::TcpOptions options = offer();
    options.sack_permitted = false;
    plain.open(options);
    plain.ack(plain.first());  // The window scale takes effect.
  }
  std::uint32_t at(std::uint32_t segment) const { return plain.first() + segment * kMss; }

  Peer plain;
};

// RFC 5681 section 2: a duplicate has the same window as before.
TEST_F(PlainPeer, WindowUpdatesAreNoDuplicates) {
  plain.write(8 * kMss);
  ASSERT_EQ(plain.collect().size(), 8U);
  plain.advance(1ms);
  for (std::uint16_t window = 1000; window <= 5000; window += 1000)
    plain.send({.seq = plain.peer_nxt(), .ack = at(0), .window = window});
  EXPECT_TRUE(plain.collect().empty());
  EXPECT_EQ(plain.stack.counters().rack_recoveries, 0U);
}

// RFC 3042: a new segment for each of the first two duplicates, beyond the window.
TEST_F(PlainPeer, FirstTwoDuplicatesLetNewDataOut) {
  plain.write(30 * kMss);
  ASSERT_EQ(plain.collect().size(), 10U);
  plain.advance(1ms);
  for (std::uint32_t i = 0; i < 2; ++i) {
    plain.ack(at(0));
    const auto segs = plain.collect();
    ASSERT_EQ(segs.size(), 1U);
    EXPECT_EQ(segs[0].seq, at(10 + i));
  }
  plain.ack(at(0));
  const auto segs = plain.collect();
  ASSERT_GE(segs.size(), 1U);
  EXPECT_EQ(segs[0].seq, at(0)) << "the third repeats the first";
  plain.advance(1ms);
  plain.ack(at(12));
  EXPECT_EQ(plain.collect().size(), 7U) << "seven tenths of ten";
}

// RFC 6937 section 3: a duplicate stands for a delivered segment, so recovery goes on sending.
TEST_F(PlainPeer, DuplicatesInRecoveryLetNewDataOut) {
  plain.write(60 * kMss);
  ASSERT_EQ(plain.collect().size(), 10U);
  plain.advance(1ms);
  plain.ack(at(10));
  ASSERT_EQ(plain.collect().size(), 20U);
  plain.advance(1ms);
  std::vector<std::uint32_t> sent;
  for (int i = 0; i < 19; ++i) {
    plain.ack(at(10));
    for (const Seg& seg : plain.collect()) sent.push_back((seg.seq - plain.first()) / kMss);
  }
  // Only 10 was lost: two by limited transmit, the retransmission, and more until 14 are in flight.
  EXPECT_EQ(std::count(sent.begin(), sent.end(), 10U), 1);
  EXPECT_NEAR(static_cast<double>(sent.size()), 14, 1);
  plain.advance(1ms);
  plain.ack(at(30));
  EXPECT_EQ(plain.stack.counters().rto_fired, 0U);
}

}  // namespace
}  // namespace ztcp::tcp::test
