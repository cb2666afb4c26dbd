// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/statistics.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp::test {
namespace {

std::vector<ConnectionStatistics> all(const Stack& stack) {
  std::vector<ConnectionStatistics> out;
  stack.for_each_connection([&](const ConnectionStatistics& one) { out.push_back(one); });
  return out;
}

class Statistics : public testing::Test {
 protected:
  Statistics() : peer(make_config()) {}
  static StackConfig make_config() {
    StackConfig config = test_config();
    config.tcp.pacing = false;
    return config;
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * kMss; }
  ConnectionStatistics only() const {
    const auto found = all(peer.stack);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? ConnectionStatistics{} : found[0];
  }
  Peer peer;
};

TEST_F(Statistics, ListEachConnectionAndItsState) {
  EXPECT_TRUE(all(peer.stack).empty());
  peer.open();
  const ConnectionStatistics s = only();
  EXPECT_STREQ(s.state, "ESTABLISHED");
  EXPECT_EQ(s.local, (Endpoint{kOurIp, peer.our_port}));
  EXPECT_EQ(s.remote, (Endpoint{kPeerIp, peer.peer_port}));
  EXPECT_EQ(s.mss_bytes, kMss);
  EXPECT_EQ(s.cwnd_bytes, 10 * kMss);
  EXPECT_GT(s.peer_window_bytes, 0U);
  peer.user.stream->close();
  peer.collect();
  EXPECT_STREQ(only().state, "FIN-WAIT-1");
  EXPECT_EQ(only().sent_bytes, 0U) << "a FIN is no byte";
}

TEST_F(Statistics, ReportQueuedInFlightAndAcknowledgedBytes) {
  peer.open();
  peer.write(12 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  ConnectionStatistics s = only();
  EXPECT_EQ(s.send_queue_bytes, 12 * kMss);
  EXPECT_EQ(s.in_flight_bytes, 10 * kMss);
  EXPECT_EQ(s.sent_bytes, 10 * kMss);
  EXPECT_EQ(s.acked_bytes, 0U);
  peer.advance(1ms);
  peer.ack(seq(10));
  s = only();
  EXPECT_EQ(s.send_queue_bytes, 2 * kMss);
  EXPECT_EQ(s.in_flight_bytes, 0U);
  EXPECT_EQ(s.acked_bytes, 10 * kMss);
  EXPECT_EQ(s.cwnd_bytes, 20 * kMss);
  EXPECT_EQ(s.heard, peer.now);
  EXPECT_GT(s.srtt, Duration::zero());
  EXPECT_GE(s.rto, peer.config.tcp.rto_min);
}

TEST_F(Statistics, CountLossesAndRetransmissions) {
  peer.open();
  peer.write(2 * kMss);
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(2));
  peer.write(10 * kMss);
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(2), {{seq(3), seq(12)}});
  ASSERT_EQ(peer.collect().size(), 1U);
  ConnectionStatistics s = only();
  EXPECT_EQ(s.fast_recoveries, 1U);
  EXPECT_EQ(s.retransmitted_bytes, kMss);
  EXPECT_EQ(s.sent_bytes, 12 * kMss) << "each byte once";
  EXPECT_EQ(s.ssthresh_bytes, 7 * kMss);
  while (only().timeouts == 0) {
    ASSERT_TRUE(peer.fire());
    peer.collect();
  }
  EXPECT_EQ(only().retransmitted_bytes, peer.stack.counters().tx_retransmitted_bytes);
  peer.send({.seq = peer.peer_nxt(), .ack = seq(12), .window = 0});
  peer.send({.seq = peer.peer_nxt(), .ack = seq(12), .window = 0});
  EXPECT_EQ(only().zero_windows, 1U);
}

TEST_F(Statistics, CountTheTimeForWhichBytesWaitForAClosedWindow) {
  peer.open();
  const auto waited = [&] {
    return peer.user.stream->stream_statistics(peer.now).zero_window_time;
  };
  peer.write(kMss);
  peer.collect();
  peer.send({.seq = peer.peer_nxt(), .ack = seq(1), .window = 0});
  peer.collect();
  peer.advance(5ms);
  EXPECT_EQ(waited(), Duration::zero()) << "no bytes wait";
  peer.write(kMss);
  peer.collect();
  peer.advance(3ms);
  EXPECT_EQ(waited(), 3ms) << "while it lasts, too";
  peer.send({.seq = peer.peer_nxt(), .ack = seq(1)});
  peer.collect();
  peer.advance(7ms);
  EXPECT_EQ(waited(), 3ms);
  peer.send({.seq = peer.peer_nxt(), .ack = seq(2), .window = 0});
  peer.write(kMss);
  peer.collect();
  peer.advance(2ms);
  EXPECT_EQ(waited(), 5ms);
  EXPECT_EQ(only().zero_windows, 2U);
}

TEST_F(Statistics, KeepEachRoundTripOfData) {
  peer.open();
  const auto rtts = [&] { return peer.user.stream->stream_statistics(peer.now).rtts->counts(); };
  EXPECT_EQ(total(rtts()), 0U) << "the handshake's is not counted";
  for (std::uint32_t i = 0; i < 4; ++i) {
    peer.write(kMss);
    peer.collect();
    peer.advance(i == 3 ? 50ms : 1ms);
    peer.ack(seq(i + 1));
  }
  EXPECT_EQ(total(rtts()), 4U);
  EXPECT_EQ(rtts()[Histogram::bucket_of(1'000'000)], 3U);
  EXPECT_EQ(rtts()[Histogram::bucket_of(50'000'000)], 1U);
}

TEST_F(Statistics, CountReceivedBytesAndSegments) {
  peer.open();
  peer.send_data(100, peer.first());
  const std::uint32_t next = peer.peer_nxt();
  peer.send({.seq = next + 50, .ack = peer.first(), .payload = pattern(50)});
  EXPECT_EQ(only().out_of_order_segments, 1U);
  EXPECT_EQ(only().received_bytes, 100U);
  peer.send({.seq = next, .ack = peer.first(), .payload = pattern(50)});
  EXPECT_EQ(only().received_bytes, 200U);
  peer.send({.seq = next, .ack = peer.first(), .payload = pattern(50)});
  EXPECT_EQ(only().duplicate_segments, 1U);
  EXPECT_EQ(only().received_bytes, 200U);
}

// A slot is reused: the next connection begins with its own numbers.
TEST_F(Statistics, OfAReusedSlotBeginAtZero) {
  peer.open();
  peer.write(kMss);
  peer.collect();
  peer.send_data(100, peer.first());
  peer.user.stream->abort();
  peer.collect();
  EXPECT_TRUE(all(peer.stack).empty());
  peer.user = {};
  ASSERT_TRUE(peer.stack.connect(peer.now, {kPeerIp, kPeerPort}, peer.user));
  const ConnectionStatistics s = only();
  EXPECT_STREQ(s.state, "SYN-SENT");
  EXPECT_EQ(s.sent_bytes + s.received_bytes + s.retransmitted_bytes, 0U);
}

TEST_F(Statistics, ReportReorderingAndNeedlessRetransmissions) {
  peer.open();
  peer.write(4 * kMss);
  peer.collect();
  peer.advance(1ms);
  peer.ack(seq(0), {{seq(3), seq(4)}});
  peer.ack(seq(4));
  ConnectionStatistics s = only();
  EXPECT_EQ(s.reordered_segments, 1U) << "of one ACK";
  EXPECT_EQ(s.most_reordered_bytes, 3 * kMss);
  EXPECT_EQ(s.dsacked_segments, 0U);
  EXPECT_EQ(peer.stack.counters().reordered_segments, 1U);
  peer.ack(seq(4), {{seq(1), seq(3)}});
  s = only();
  EXPECT_EQ(s.dsacked_segments, 2U);
}

}  // namespace
}  // namespace ztcp::tcp::test
