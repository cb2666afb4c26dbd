// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Switches that spread flows over four equal paths by the IPv6 flow label. A connection leaves a
// path that is broken or congested, and stays where all paths are alike.
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "tests/sim/tcp_world.h"
#include "transport/link/impairment.h"
#include "transport/tcp/dctcp.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPaths = 4;

// Nothing: not TCP. Switches with another `salt` spread flows otherwise.
std::optional<std::size_t> path_of(const Bytes& frame, std::uint64_t salt) {
  RxFrame view;
  view.head = frame;
  const auto parsed = wire::parse_frame(view);
  if (parsed.kind != wire::FrameKind::kTcp) return std::nullopt;
  return (parsed.ip.flow_label + salt) * 0x9e3779b97f4a7c15U >> 62;
}

// Two hosts, and in each direction four paths between them.
class Fabric {
 public:
  explicit Fabric(std::uint64_t seed) : pair(options(seed)), dice_(seed) {
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
      pair.world.wire(from).drop_if([this, from, seed](const Bytes& frame) {
        const auto path = path_of(frame, seed);
        if (!path) return false;
        in_use[from] = *path;
        return broken[from].contains(*path);
      });
      pair.world.wire(from).change([this, from, seed](Bytes& frame) {
        const auto path = path_of(frame, seed);
        if (path && dice_.chance(marked[from][*path])) set_codepoint_of_data(frame);
      });
    }
  }

  TcpWorld pair;
  std::size_t in_use[2] = {};  // By the last segment of each host.
  std::set<std::size_t> broken[2];
  double marked[2][kPaths] = {};  // Share of the packets.

 private:
  static TcpWorldOptions options(std::uint64_t seed) {
    TcpWorldOptions options = short_path(200'000'000, 0, /*is_ipv6=*/true);
    options.world.seed = seed;
    options.world.forward.rate_bits_per_second = 10'000'000'000;
    options.world.forward.queue_limit_bytes = 4U << 20;
    options.stack.tcp.congestion_control_by_marks = tcp::make_congestion_control<tcp::Dctcp>;
    return options;
  }
  static void set_codepoint_of_data(Bytes& frame) {
    RxFrame view;
    view.head = frame;
    if (wire::parse_frame(view).ip.ecn != wire::Ecn::kNotCapable)
      set_codepoint(frame, wire::Ecn::kCongestion);
  }

  link::Dice dice_;
};

class Reroute : public testing::TestWithParam<std::uint64_t> {
 protected:
  void begin() {
    ASSERT_TRUE(fabric.pair.run_until_connected()) << fabric.pair.world.why();
    ASSERT_TRUE(fabric.pair.world.run_until([&] { return received() > 1'000'000; }));
  }
  std::size_t received() const { return fabric.pair.server.received(); }
  // The time until more is acknowledged than was in flight.
  Duration time_to_progress() {
    const TimePoint before = fabric.pair.world.now();
    const std::uint64_t target = fabric.pair.client.acked() + 10'000'000;
    const auto is_done = [&] { return fabric.pair.client.acked() >= target; };
    EXPECT_TRUE(fabric.pair.world.run_until(is_done, 8s)) << fabric.pair.world.why();
    return fabric.pair.world.now() - before;
  }
  std::uint64_t reroutes(bool of_server = false) {
    return (of_server ? fabric.pair.server_stack : fabric.pair.client_stack).counters().reroutes;
  }

  Fabric fabric{GetParam()};
};

// Each timeout tries another of four paths: three of four are good.
TEST_P(Reroute, LeavesABrokenPathAfterTimeouts) {
  begin();
  fabric.broken[0] = {fabric.in_use[0]};
  EXPECT_LT(time_to_progress(), 150ms);
  EXPECT_GE(reroutes(), 1U);
  const auto told = fabric.pair.client_stack.take_reroute();
  if (reroutes() >= 2) {
    ASSERT_TRUE(told);
    EXPECT_EQ(told->cause, tcp::Reroute::Cause::kTimeouts);
    EXPECT_EQ(told->evidence, 2U);
    EXPECT_EQ(told->remote.port, kPort);
  }
  EXPECT_FALSE(fabric.pair.client_stack.take_reroute()) << "once";
}

// The peer repeats what it has sent: its new flow labels show that ACKs do not arrive.
TEST_P(Reroute, AReceiverLeavesABrokenPathOfItsAcks) {
  begin();
  fabric.broken[1] = {fabric.in_use[1]};
  EXPECT_LT(time_to_progress(), 500ms);
  EXPECT_GE(reroutes(/*of_server=*/true), 1U);
}

TEST_P(Reroute, ConnectsThoughPathsAreBroken) {
  fabric.broken[0] = {0, 1};
  fabric.broken[1] = {2, 3};
  ASSERT_TRUE(fabric.pair.connect());
  EXPECT_TRUE(fabric.pair.world.run_until([&] { return received() > 1'000'000; }, 19s))
      << fabric.pair.world.why();
}

// 70 % of the packets on its path are marked, none on others.
TEST_P(Reroute, LeavesACongestedPath) {
  begin();
  const std::size_t path = fabric.in_use[0];
  fabric.marked[0][path] = 0.7;
  // Round trips take 20 us and the time in the queue, at most 50 us on average here.
  ASSERT_TRUE(fabric.pair.world.run_until([&] { return fabric.in_use[0] != path; }, 50ms))
      << fabric.pair.world.why();
  EXPECT_EQ(fabric.pair.client_stack.counters().rto_fired, 0U);
  const auto told = fabric.pair.client_stack.take_reroute();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->cause, tcp::Reroute::Cause::kMarks);
  EXPECT_GE(told->evidence, 3U);
  const std::uint64_t moves = reroutes();
  ASSERT_TRUE(fabric.pair.world.run_for(50ms)) << fabric.pair.world.why();
  EXPECT_EQ(reroutes(), moves) << "the other path is good";
}

TEST_P(Reroute, StaysWhereAllPathsAreMarkedAlike) {
  begin();
  for (double& path : fabric.marked[0]) path = 0.7;
  ASSERT_TRUE(fabric.pair.world.run_for(100ms)) << fabric.pair.world.why();
  EXPECT_GE(reroutes(), 1U) << "it tries";
  EXPECT_LE(reroutes(), 10U);
}

// Ordinary marking: an eighth of the packets, on all paths.
TEST_P(Reroute, StaysOnAPathThatMarksAFew) {
  begin();
  for (double& path : fabric.marked[0]) path = 0.125;
  ASSERT_TRUE(fabric.pair.world.run_for(50ms)) << fabric.pair.world.why();
  EXPECT_EQ(reroutes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Reroute, testing::Values(1, 2, 3, 4, 5));

}  // namespace
}  // namespace ztcp::sim
