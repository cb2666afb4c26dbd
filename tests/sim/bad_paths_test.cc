// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sessions of four flows over IPv4, spread by port over eight paths, of which some are bad: their
// switches mark or lose packets. Flows leave bad paths, and stay where all are alike.
#include <chrono>
#include <cstdint>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "tests/sim/engine_world.h"
#include "transport/link/impairment.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPaths = 8;

class BadPaths : public testing::TestWithParam<std::uint64_t> {
 protected:
  BadPaths() {
    pair.world.wire(0).drop_if([this](const Bytes& frame) { return meets(frame, loses); });
    pair.world.wire(0).change([this](Bytes& frame) {
      if (meets(frame, marks)) set_codepoint(frame, wire::Ecn::kCongestion);
    });
  }
  void begin() {
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return are_four_up(pair); })) << pair.world.why();
  }
  void run_for(Duration time) {
    EXPECT_TRUE(pair.world.run_for(time)) << pair.world.why();
    ASSERT_FALSE(pair.is_all_done()) << "bytes are in flight all the time";
  }
  std::size_t path_of(std::uint16_t port) const {
    return (port + GetParam()) * 0x9e3779b97f4a7c15U >> 61;
  }
  std::set<std::size_t> paths_in_use() {
    used_.clear();
    run_for(20ms);
    return used_;
  }

  EngineWorld pair{long_messages(), GetParam(), 3000};
  // Shares of the packets, for each path.
  std::function<double(std::size_t)> marks = [](std::size_t) { return 0; };
  std::function<double(std::size_t)> loses = [](std::size_t) { return 0; };

 private:
  static Case long_messages() {
    Case slow = four_flows();
    slow.cable.rate_bits_per_second = 100'000'000;
    slow.cable.queue_limit_bytes = 1U << 20;
    slow.cable.ecn_threshold_bytes = 128U << 10;  // Its own queue loses nothing.
    return slow;
  }
  bool meets(const Bytes& frame, const std::function<double(std::size_t)>& shares) {
    RxFrame view;
    view.head = frame;
    const auto parsed = wire::parse_frame(view);
    if (parsed.kind != wire::FrameKind::kTcp || parsed.payload_bytes < 1000) return false;
    const std::size_t path = path_of(parsed.tcp.source_port);
    used_.insert(path);
    return dice_.chance(shares(path));
  }

  std::set<std::size_t> used_;
  link::Dice dice_{GetParam()};
};

TEST_P(BadPaths, PathThatIsMarked_IsLeft) {
  begin();
  const auto paths = paths_in_use();
  ASSERT_GE(paths.size(), 3U) << "most flows use one path: take other seeds";
  marks = [bad = *paths.begin()](std::size_t path) { return path == bad ? 0.9 : 0; };
  run_for(4s);
  EXPECT_FALSE(paths_in_use().contains(*paths.begin()));
  EXPECT_GE(pair.flow_events.redialled, 1);
  const int moves = pair.flow_events.redialled;
  run_for(1s);
  EXPECT_EQ(pair.flow_events.redialled, moves) << "the other paths are good";
}

TEST_P(BadPaths, PathThatLosesPackets_IsLeft) {
  begin();
  const auto paths = paths_in_use();
  ASSERT_GE(paths.size(), 3U) << "most flows use one path: take other seeds";
  loses = [bad = *paths.begin()](std::size_t path) { return path == bad ? 0.4 : 0; };
  run_for(4s);
  EXPECT_FALSE(paths_in_use().contains(*paths.begin()));
}

TEST_P(BadPaths, FlowsStayWhereAllPathsAreMarkedAlike) {
  begin();
  marks = [](std::size_t) { return 0.9; };
  run_for(4s);
  EXPECT_EQ(pair.flow_events.redialled, 0);
}

TEST_P(BadPaths, FlowsStayWhereAllPathsLosePackets) {
  begin();
  loses = [](std::size_t) { return 0.3; };
  run_for(4s);
  EXPECT_EQ(pair.flow_events.redialled, 0);
}

// Ordinary marking: an eighth of the packets.
TEST_P(BadPaths, FlowsStayWhereAFewPacketsAreMarked) {
  begin();
  marks = [](std::size_t path) { return path % 2 == 0 ? 0.125 : 0; };
  run_for(4s);
  EXPECT_EQ(pair.flow_events.redialled, 0);
}

// Other paths are congested every half a second: moving is no help, and becomes rare.
TEST_P(BadPaths, FlowsMoveLessAndLessOftenWhereBadPathsChange) {
  begin();
  marks = [this](std::size_t path) {
    const auto half_seconds = static_cast<std::size_t>(pair.world.now().time_since_epoch() / 500ms);
    return (half_seconds * 5 + path) % 8 < 2 ? 0.9 : 0;
  };
  run_for(2s);
  EXPECT_GE(pair.flow_events.redialled, 1);
  run_for(8s);
  EXPECT_LE(pair.flow_events.redialled, 4) << "at 0, 1, 3 and 7 s";
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadPaths, testing::Range<std::uint64_t>(1, 4));

}  // namespace
}  // namespace ztcp::sim
