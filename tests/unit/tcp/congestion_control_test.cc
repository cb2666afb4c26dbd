// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seam: a Stack with algorithms of the tests, which are told events and decide the window.
#include "transport/tcp/congestion_control.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/tcp/harness.h"
#include "tests/unit/tcp/mss.h"
#include "transport/tcp/bbr.h"

namespace ztcp::tcp::test {
namespace {

// RFC 5681, nothing more; records its events.
class Reno final : public CongestionControl {
 public:
  static inline std::string heard;
  static inline std::vector<Ack> acks;

  explicit Reno(SeqNum) { heard += "begin "; }

  void on_ack(TimePoint, const Ack& ack, Window& window) override {
    acks.push_back(ack);
    if (!ack.window_limited) return;
    if (window.in_slow_start()) {
      window.cwnd_bytes += ack.acked_bytes;
      return;
    }
    acked_bytes_ += ack.acked_bytes;
    if (acked_bytes_ < window.cwnd_bytes) return;
    acked_bytes_ -= window.cwnd_bytes;
    window.cwnd_bytes += window.mss_bytes;
  }
  std::uint32_t on_loss(const Window& window) override {
    heard += "loss ";
    return std::max(window.cwnd_bytes / 2, 2 * window.mss_bytes);
  }
  void on_timeout(SeqNum) override { heard += "timeout "; }
  void save() override { heard += "save "; }
  void undo() override { heard += "undo "; }

 private:
  std::uint32_t acked_bytes_ = 0;
};

class FixedWindow final : public CongestionControl {
 public:
  static constexpr std::uint32_t kSegments = 3;
  explicit FixedWindow(SeqNum) {}
  void on_ack(TimePoint, const Ack&, Window& window) override {
    window.cwnd_bytes = kSegments * window.mss_bytes;
  }
  std::uint32_t on_loss(const Window& window) override { return kSegments * window.mss_bytes; }
  void on_timeout(SeqNum) override {}
  void save() override {}
  void undo() override {}
};

// Rate based, with a window and a rate of its own; records its ACKs.
class FixedRate final : public CongestionControl {
 public:
  static inline std::vector<Ack> acks;
  explicit FixedRate(SeqNum) { acks.clear(); }
  void begin(Window& window) override { window.rate_based = true; }
  void on_ack(TimePoint, const Ack& ack, Window&) override { acks.push_back(ack); }
  std::uint32_t on_loss(const Window&) override { return Window::kMaxBytes; }
  void on_timeout(SeqNum) override {}
  std::uint64_t pacing_rate(const Window&, Duration) const override { return 1'000'000'000; }
  void save() override {}
  void undo() override {}
};

// Rate based and slow until the first ACK.
class SlowAtFirst final : public CongestionControl {
 public:
  explicit SlowAtFirst(SeqNum) {}
  void begin(Window& window) override { window.rate_based = true; }
  void on_ack(TimePoint, const Ack&, Window& window) override {
    window.rate_based = false;
    window.cwnd_bytes = 100 * window.mss_bytes;
  }
  std::uint32_t on_loss(const Window& window) override { return window.cwnd_bytes; }
  void on_timeout(SeqNum) override {}
  std::uint64_t pacing_rate(const Window&, Duration) const override { return 1000; }
  void save() override {}
  void undo() override {}
};

StackConfig with(MakeCongestionControl make) {
  StackConfig config = test_config();
  config.tcp.congestion_control = make;
  config.tcp.pacing = false;
  return config;
}

class Seam : public testing::Test {
 protected:
  Seam() : peer(with(make_congestion_control<Reno>)) {
    Reno::heard.clear();
    Reno::acks.clear();
    peer.open();
    // The first ACK gives the round trip.
    peer.write(2 * kMss);
    EXPECT_EQ(peer.collect().size(), 2U);
    peer.advance(1ms);
    peer.ack(seq(2));
    Reno::acks.clear();
  }
  std::uint32_t seq(std::uint32_t segment) const { return peer.first() + segment * kMss; }

  Peer peer;
};

TEST_F(Seam, AlgorithmIsToldBytesRoundTripAndLimit) {
  peer.write(30 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  const TimePoint resumed = peer.now;
  peer.advance(1ms);
  peer.ack(seq(12));
  ASSERT_EQ(Reno::acks.size(), 1U) << "once per ACK, however many segments";
  EXPECT_EQ(Reno::acks[0].acked_bytes, 10 * kMss);
  EXPECT_TRUE(Reno::acks[0].window_limited);
  EXPECT_EQ(Reno::acks[0].resumed, resumed);
  EXPECT_GE(Reno::acks[0].rtt_sample, 1ms);
  EXPECT_EQ(peer.collect().size(), 20U) << "slow start doubles";
  peer.advance(1ms);
  peer.ack(seq(32));
  EXPECT_FALSE(Reno::acks.back().window_limited) << "the user was the limit";
}

TEST_F(Seam, ALossHalvesRenosWindow) {
  peer.write(10 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  peer.ack(seq(2), {{seq(3), seq(12)}});
  ASSERT_EQ(peer.collect().size(), 1U);
  peer.advance(1ms);
  peer.ack(seq(12));
  EXPECT_EQ(Reno::heard, "begin save loss ");
  peer.write(20 * kMss);
  EXPECT_EQ(peer.collect().size(), 5U);
}

TEST_F(Seam, ASpuriousTimeoutIsUndone) {
  peer.write(10 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  const std::uint32_t original = peer.last_ts;
  while (peer.stack.counters().rto_fired == 0) {
    ASSERT_TRUE(peer.fire());
    peer.collect();
  }
  peer.collect();
  EXPECT_EQ(Reno::heard, "begin save loss timeout ");
  Seg late{.seq = peer.peer_nxt(), .ack = seq(4)};
  late.options.timestamps = wire::Timestamps{peer.timestamp(), original};
  peer.send(late);
  EXPECT_EQ(Reno::heard, "begin save loss timeout undo ");
  peer.write(20 * kMss);
  EXPECT_EQ(peer.collect().size(), 2U) << "the window of 10 is back, and 8 are in flight";
}

TEST(CongestionControl, TheAlgorithmSetsTheWindow) {
  Peer peer(with(make_congestion_control<FixedWindow>));
  peer.open();
  peer.write(50 * kMss);
  EXPECT_EQ(peer.collect().size(), 10U) << "RFC 6928's applies before its first answer";
  for (std::uint32_t acked = 10; acked < 22; acked += FixedWindow::kSegments) {
    peer.advance(1ms);
    peer.ack(peer.first() + acked * kMss);
    EXPECT_EQ(peer.collect().size(), FixedWindow::kSegments);
  }
}

// Ten segments, of which the first is lost: the algorithm's window holds in fast recovery.
TEST(CongestionControl, RateBasedOneIsToldDeliveriesInRecovery) {
  Peer peer(with(make_congestion_control<FixedRate>));
  peer.open();
  const auto seq = [&](std::uint32_t segment) { return peer.first() + segment * kMss; };
  peer.write(30 * kMss);
  ASSERT_EQ(peer.collect().size(), 10U);
  peer.advance(1ms);
  peer.ack(seq(0), {{seq(1), seq(6)}});
  ASSERT_EQ(FixedRate::acks.size(), 1U);
  const CongestionControl::Ack& first = FixedRate::acks[0];
  EXPECT_EQ(first.acked_bytes, 0U);
  EXPECT_EQ(first.delivered_bytes, 5 * kMss);
  EXPECT_EQ(first.lost_bytes, kMss);
  EXPECT_EQ(first.flight_bytes, 4 * kMss);
  EXPECT_TRUE(first.in_recovery);
  EXPECT_EQ(first.rate.bytes, 5 * kMss);
  EXPECT_EQ(first.rate.interval, 1ms);
  EXPECT_EQ(first.rate.lost_bytes, kMss);
  EXPECT_EQ(first.rate.sent_flight_bytes, 10 * kMss);
  std::size_t sent = peer.collect().size();
  for (int turn = 0; turn < 10; ++turn) {
    peer.advance(100us);
    sent += peer.collect().size();
  }
  EXPECT_EQ(sent, 6U) << "one again and five new ones: 10 are in flight";
  peer.ack(seq(10));
  ASSERT_EQ(FixedRate::acks.size(), 2U);
  EXPECT_FALSE(FixedRate::acks[1].in_recovery);
  EXPECT_EQ(FixedRate::acks[1].delivered_bytes, 5 * kMss);
}

TEST(CongestionControl, PacingEndsWithTheRate) {
  Peer peer(with(make_congestion_control<SlowAtFirst>));
  peer.open();
  const auto seq = [&](std::uint32_t segment) { return peer.first() + segment * kMss; };
  std::uint32_t acked = 0;
  for (int turn = 0; turn < 3; ++turn) {
    peer.write(kMss);
    peer.advance(20s);
    peer.collect();
    peer.ack(seq(++acked));
  }
  peer.write(30 * kMss);
  EXPECT_EQ(peer.collect().size(), 30U);
}

TEST(CongestionControl, AStackMovesBytesWithEachAlgorithm) {
  for (const MakeCongestionControl make :
       {make_congestion_control<Reno>, make_congestion_control<FixedWindow>,
        make_congestion_control<FixedRate>, make_congestion_control<Cubic>,
        make_congestion_control<Bbr>}) {
    StackConfig other = test_config();
    other.mac = kPeerMac;
    other.address = {kPeerIp, 24};
    Pair pair(with(make), other);
    pair.connect();
    int count = 0;
    pair.drop = [&](const TxFrame& frame, bool from_left) {
      return from_left && frame.payload_bytes > 0 && ++count % 50 == 0;
    };
    const Bytes out = pattern(1'000'000);
    std::size_t sent = 0;
    ASSERT_TRUE(pair.run_until([&] {
      for (; sent < out.size() && pair.client.stream->room() >= 50'000; sent += 50'000) {
        const Fragment fragment{out.data() + sent, 50'000, kUnmapped};
        if (!pair.client.stream->write({}, std::span(&fragment, 1))) break;
      }
      pair.pump();
      return pair.server.received.size() == out.size();
    }));
    EXPECT_EQ(pair.server.received, out);
  }
}

}  // namespace
}  // namespace ztcp::tcp::test
