// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sessions whose flows are all silent. If their paths are dead, other ports lead to good ones. If
// the peer is stopped or slow, no flow moves.
#include <chrono>
#include <cstdint>
#include <set>

#include <gtest/gtest.h>

#include "tests/sim/engine_world.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

// The sender's port of a segment; 0: not TCP.
std::uint16_t port_of(const Bytes& frame, bool is_forward) {
  RxFrame view;
  view.head = frame;
  const auto parsed = wire::parse_frame(view);
  if (parsed.kind != wire::FrameKind::kTcp) return 0;
  return is_forward ? parsed.tcp.source_port : parsed.tcp.destination_port;
}

class SilentFlows : public testing::TestWithParam<std::uint64_t> {
 protected:
  explicit SilentFlows(const Case& line = four_flows()) : pair(line, GetParam(), 1000) {}
  void begin() {
    for (const std::size_t way : {std::size_t{0}, std::size_t{1}})
      pair.world.wire(way).drop_if([this, way](const Bytes& frame) {
        const std::uint16_t port = port_of(frame, way == 0);
        if (!is_cut_) ports_.insert(port);
        if (way == 0 && pair.world.now() < stopped_until_ && ++in_ring_ > kRingFrames) return true;
        return is_cut_ && (way == 0 || is_cut_back_) && is_dead(port);
      });
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return are_four_up(pair); })) << pair.world.why();
    ASSERT_FALSE(pair.is_all_done());
  }
  // Cuts the paths of all ports in use, and those of half of the others.
  void cut_paths(bool back) {
    is_cut_ = true;
    is_cut_back_ = back;
  }
  // The peer's process, whose NIC drops frames that find its ring full.
  void stop_peer(Duration time) {
    in_ring_ = 0;
    stopped_until_ = pair.world.now() + time;
    pair.world.stop(1, stopped_until_);
  }

  EngineWorld pair;

 private:
  static constexpr std::size_t kRingFrames = 256;

  bool is_dead(std::uint16_t port) const {
    return ports_.contains(port) || ((port + GetParam()) * 0x9e3779b1U >> 31 & 1U) != 0;
  }

  std::set<std::uint16_t> ports_;
  bool is_cut_ = false;
  bool is_cut_back_ = false;
  TimePoint stopped_until_ = TimePoint::min();
  std::size_t in_ring_ = 0;
};

// A line on which messages last for seconds.
class LongSilentFlows : public SilentFlows {
 protected:
  LongSilentFlows() : SilentFlows(slow_line()) {}

 private:
  static Case slow_line() {
    Case slow = four_flows();
    slow.cable.rate_bits_per_second = 100'000'000;
    slow.cable.queue_limit_bytes = 256U << 10;
    return slow;
  }
};

TEST_P(SilentFlows, OnDeadPaths_LeaveThemWithinHalfASecond) {
  begin();
  cut_paths(/*back=*/false);
  const auto longest = longest_standstill(pair);
  ASSERT_TRUE(longest) << pair.world.why();
  EXPECT_LE(*longest, 500ms);
  EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
}

TEST_P(SilentFlows, OnPathsDeadBothWays_LeaveThemWithinHalfASecond) {
  begin();
  cut_paths(/*back=*/true);
  const auto longest = longest_standstill(pair);
  ASSERT_TRUE(longest) << pair.world.why();
  EXPECT_LE(*longest, 500ms);
  EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
}

TEST_P(LongSilentFlows, OfAStoppedPeer_Stay) {
  begin();
  for (const Duration stop : {30ms, 120ms, 300ms, 1000ms, 2500ms, 3500ms}) {
    stop_peer(stop);
    const std::size_t soon = pair.receiver.done + 20;
    ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= soon; }, 20s))
        << pair.world.why();
    EXPECT_TRUE(pair.world.run_for(300ms));
    ASSERT_FALSE(pair.is_all_done());
    EXPECT_EQ(pair.flow_events.redialled, 0) << std::chrono::duration<double>(stop).count();
    pair.flow_events.redialled = 0;
  }
}

// It runs for 5 of each 105 or 205 ms, and its NIC's ring overflows meanwhile.
TEST_P(LongSilentFlows, OfASlowPeer_Stay) {
  begin();
  for (const Duration stop : {100ms, 200ms, 500ms}) {
    for (int i = 0; i < 20; ++i) {
      stop_peer(stop);
      EXPECT_TRUE(pair.world.run_for(stop + 5ms));
    }
    ASSERT_FALSE(pair.is_all_done());
    EXPECT_EQ(pair.flow_events.redialled, 0) << std::chrono::duration<double>(stop).count();
    pair.flow_events.redialled = 0;
  }
}

// Both directions lose 30 % of their packets: timeouts in a row, but no path is better.
TEST_P(LongSilentFlows, OnACongestedNetwork_Stay) {
  begin();
  link::Dice dice(GetParam());
  for (const std::size_t way : {std::size_t{0}, std::size_t{1}})
    pair.world.wire(way).drop_if([&](const Bytes&) { return dice.chance(0.3); });
  const std::size_t before = pair.receiver.done;
  EXPECT_TRUE(pair.world.run_for(3s)) << pair.world.why();
  EXPECT_GT(pair.receiver.done, before);
  EXPECT_EQ(pair.flow_events.redialled, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SilentFlows, testing::Range<std::uint64_t>(1, 9));
INSTANTIATE_TEST_SUITE_P(Seeds, LongSilentFlows, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace ztcp::sim
