// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The congestion controls side by side: loss without a queue, and sharing a bottleneck.
// bench/results/tcp-networks.md has the printed numbers.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/bottleneck.h"
#include "transport/tcp/auto_control.h"
#include "transport/tcp/bbr.h"
#include "transport/tcp/cubic.h"
#include "transport/tcp/swift.h"

namespace ztcp::sim {
namespace {

const tcp::MakeCongestionControl kCubic = tcp::make_congestion_control<tcp::Cubic>;
const tcp::MakeCongestionControl kBbr = tcp::make_congestion_control<tcp::Bbr>;
const tcp::MakeCongestionControl kAuto = tcp::make_congestion_control<tcp::AutoControl>;

Line line_of(std::uint64_t mbps, Duration round_trip, Duration queue) {
  Line line{.rate_bits_per_second = mbps * 1'000'000,
            .round_trip = round_trip,
            .queue = queue,
            .receiver_turn = 2us,
            .mtu_bytes = 9000,
            .sender_turn = 2us};
  // A path is as long as its window allows, with losses three times as long.
  line.tcp.receive_window_bytes = 64U << 20;
  return line;
}

// Share of 10 Gb/s in the second half of `span`; where packets are lost by chance, the mean of two
// runs.
double share(tcp::MakeCongestionControl make, Duration round_trip, double loss, Duration span) {
  Line line = line_of(10'000, round_trip, round_trip);
  line.loss = loss;
  const std::uint64_t runs = loss > 0 ? 2 : 1;
  double sum = 0;
  for (line.seed = 1; line.seed <= runs; ++line.seed) {
    Bottleneck world(line);
    const Source& source = world.open(make);
    world.run(span / 2);
    const std::uint64_t before = source.acked;
    world.run(span / 2);
    sum += static_cast<double>(source.acked - before) / line.bytes_in(span / 2);
  }
  return sum / static_cast<double>(runs);
}

struct Loss {
  Duration round_trip;
  double loss;
  double least_bbr;
  double least_auto;
};

TEST(CongestionControls, ShareOfALineThatLosesPackets) {
  std::printf("    share of 10 Gb/s      loss   cubic    bbr   auto\n");
  for (const Loss& path :
       {Loss{50us, 0, 0.97, 0.97}, Loss{50us, 0.001, 0.97, 0.97}, Loss{50us, 0.01, 0.94, 0.9},
        Loss{50us, 0.05, 0.85, 0.4}, Loss{1ms, 0, 0.95, 0.95}, Loss{1ms, 0.001, 0.95, 0.9},
        Loss{1ms, 0.01, 0.92, 0.9}, Loss{1ms, 0.05, 0.8, 0.6}, Loss{10ms, 0, 0.95, 0.95},
        Loss{10ms, 0.001, 0.95, 0.9}, Loss{10ms, 0.01, 0.85, 0.85}, Loss{10ms, 0.05, 0.2, 0.15}}) {
    const Duration span = path.round_trip < 1ms ? 200ms : path.round_trip < 10ms ? 600ms : 4s;
    const double cubic = share(kCubic, path.round_trip, path.loss, span);
    const double bbr = share(kBbr, path.round_trip, path.loss, span);
    const double chosen = share(kAuto, path.round_trip, path.loss, span);
    std::printf("    %9d us       %5.1f %%   %5.2f  %5.2f  %5.2f\n",
                static_cast<int>(path.round_trip / 1us), 100 * path.loss, cubic, bbr, chosen);
    EXPECT_GE(bbr, path.least_bbr);
    EXPECT_GE(chosen, path.least_auto);
    if (path.loss == 0) {
      EXPECT_GE(chosen, cubic - 0.01);
    }
  }
}

// The losses of a probe are found while less is in flight: they are not taken for too many.
TEST(CongestionControls, BbrKeepsProbingWhereFivePercentAreLost) {
  double shares = 0;
  constexpr std::uint64_t kSeeds = 4;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Line line = line_of(500, 10ms, 10ms);
    line.mtu_bytes = 1500;
    line.loss = 0.05;
    line.seed = seed;
    Bottleneck world(line);
    const Source& source = world.open(kBbr);
    world.run(1s);
    const std::uint64_t before = source.acked;
    world.run(4s);
    shares += static_cast<double>(source.acked - before) / line.bytes_in(4s) / kSeeds;
  }
  std::printf("    500 Mb/s, 10 ms, 5 %% lost, bbr: share %.3f\n", shares);
  EXPECT_GE(shares, 0.85);
}

// A poller that others keep from its CPU: what pacing held back meanwhile leaves when it comes.
TEST(CongestionControls, SlowPollerKeepsThePace) {
  for (const Duration turn : {200us, 1000us}) {
    Line line = line_of(500, 10ms, 10ms);
    line.mtu_bytes = 1500;
    line.sender_turn = line.receiver_turn = turn;
    Bottleneck world(line);
    const Source& source = world.open(kBbr);
    world.run(1s);
    const std::uint64_t before = source.acked;
    world.run(1s);
    const double share = static_cast<double>(source.acked - before) / line.bytes_in(1s);
    std::printf("    turns of %d us, bbr: share %.3f\n", static_cast<int>(turn / 1us), share);
    EXPECT_GE(share, 0.9);
  }
}

// A host's delays look like a queue: losses in it are compared with those without one.
TEST(CongestionControls, AutoKeepsBbrWhereAPollerIsLate) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Line line = line_of(500, 1ms, 1ms);
    line.mtu_bytes = 1500;
    line.loss = 0.01;
    line.seed = seed;
    line.sender_turn = line.receiver_turn = 100us;
    Bottleneck world(line);
    const Source& source = world.open(kAuto);
    world.run(500ms);
    const std::uint64_t before = source.acked;
    world.run(2s);
    EXPECT_GE(static_cast<double>(source.acked - before) / line.bytes_in(2s), 0.9);
  }
}

TEST(CongestionControls, StackTellsOfAChange) {
  Line line = line_of(10'000, 1ms, 1ms);
  line.loss = 0.01;
  Bottleneck world(line);
  world.open(kAuto);
  EXPECT_FALSE(world.sender().take_control_change());
  world.run(200ms);
  const auto change = world.sender().take_control_change();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->remote, IpAddress(TcpWorld::address(1)));
  EXPECT_EQ(std::string_view(change->now), "bbr");
  EXPECT_NEAR(static_cast<double>(change->min_rtt / 1us), 1000, 50);
  EXPECT_FALSE(world.sender().take_control_change()) << "once";
  EXPECT_EQ(world.sender().counters().control_changes, 1U);
  world.sender().for_each_connection([](const tcp::ConnectionStatistics& connection) {
    EXPECT_EQ(std::string_view(connection.congestion_control), "bbr");
  });
}

struct Pair {
  double first_mbps;
  double second_mbps;
  double jain() const {
    const double sum = first_mbps + second_mbps;
    return sum * sum / (2 * (first_mbps * first_mbps + second_mbps * second_mbps));
  }
};

// An old flow and one that opens 200 ms later: the rates in the last quarter of `span` after that.
Pair pair_of(const Line& line, tcp::MakeCongestionControl old_one, tcp::MakeCongestionControl fresh,
             Duration span) {
  Bottleneck world(line);
  const Source& first = world.open(old_one);
  world.run(200ms);
  const Source& second = world.open(fresh);
  world.run(span * 3 / 4);
  const std::uint64_t first_before = first.acked;
  const std::uint64_t second_before = second.acked;
  world.run(span / 4);
  const double to_mbps = 8e-6 / std::chrono::duration<double>(span / 4).count();
  return {static_cast<double>(first.acked - first_before) * to_mbps,
          static_cast<double>(second.acked - second_before) * to_mbps};
}

struct Sharing {
  const char* name;
  std::uint64_t mbps;
  Duration round_trip;
  Duration queue;
  // Least fairness of BBR beside BBR. Beside CUBIC none is promised: see the decision record.
  double least_jain;
};

// `auto` is CUBIC here, to the byte or nearly so.
TEST(CongestionControls, SharingABottleneckFor2Seconds) {
  std::printf(
      "    old beside new flow, Mb/s    bbr+bbr       cubic+bbr     bbr+cubic     "
      "cubic+cubic   auto+auto     cubic+auto\n");
  for (const Sharing& path : {Sharing{"500M 1ms 1BDP", 500, 1ms, 1ms, 0.95},
                              Sharing{"500M 10ms 1BDP", 500, 10ms, 10ms, 0.85},
                              Sharing{"10G 50us 4BDP", 10'000, 50us, 200us, 0.93},
                              Sharing{"10G 1ms 1BDP", 10'000, 1ms, 1ms, 0.95},
                              Sharing{"10G 1ms 1/5BDP", 10'000, 1ms, 200us, 0.8}}) {
    const Line line = line_of(path.mbps, path.round_trip, path.queue);
    const std::array<std::array<tcp::MakeCongestionControl, 2>, 6> pairs{{{kBbr, kBbr},
                                                                          {kCubic, kBbr},
                                                                          {kBbr, kCubic},
                                                                          {kCubic, kCubic},
                                                                          {kAuto, kAuto},
                                                                          {kCubic, kAuto}}};
    std::printf("    %-22s", path.name);
    std::array<Pair, 6> rates{};
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      rates[i] = pair_of(line, pairs[i][0], pairs[i][1], 2s);
      std::printf("  %5.0f %5.0f", rates[i].first_mbps, rates[i].second_mbps);
    }
    std::printf("   Jain");
    for (const Pair& rate : rates) std::printf(" %.3f", rate.jain());
    std::printf("\n");
    EXPECT_GE(rates[0].jain(), path.least_jain);
    EXPECT_GE(rates[4].jain(), rates[3].jain() - 0.03);
    EXPECT_GE(rates[5].jain(), rates[3].jain() - 0.03);
  }
}

// A buffer of a tenth of the path: losses come without a visible queue, and BBR's flows would
// starve each other.
TEST(CongestionControls, ManyFlowsInAShallowBufferShareIt) {
  constexpr std::size_t kFlows = 16;
  for (const auto& [mtu_bytes, queue] :
       {std::pair<std::uint16_t, Duration>{1500, 20us}, {9000, 80us}}) {
    Line line = line_of(10'000, 200us, queue);
    line.mtu_bytes = mtu_bytes;
    Bottleneck world(line);
    for (std::size_t i = 0; i < kFlows; ++i) world.open(kAuto);
    world.run(1s);
    std::vector<std::uint64_t> before;
    for (const auto& source : world.sources()) before.push_back(source->acked);
    world.run(500ms);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < kFlows; ++i) {
      const auto bytes = static_cast<double>(world.sources()[i]->acked - before[i]);
      sum += bytes;
      squares += bytes * bytes;
    }
    const double jain = sum * sum / (kFlows * squares);
    const double share = sum / line.bytes_in(500ms);
    std::printf("    16 flows, MTU %u, auto: share %.3f, Jain %.3f\n", mtu_bytes, share, jain);
    EXPECT_GE(share, 0.9);
    EXPECT_GE(jain, 0.9);
  }
}

// Four flows in a queue of 1 MB: CUBIC fills it, Swift keeps it to a few times its target.
TEST(CongestionControls, SwiftKeepsTheQueueShort) {
  Line line = line_of(10'000, 50us, 800us);
  std::array<double, 2> mbps{};
  std::array<Duration, 2> queue{};
  for (const bool swift : {false, true}) {
    const tcp::MakeCongestionControl make =
        swift ? tcp::make_congestion_control<tcp::Swift> : kCubic;
    Bottleneck world(line);
    for (int i = 0; i < 4; ++i) world.open(make);
    world.run(50ms);
    std::uint64_t before = 0;
    for (const auto& source : world.sources()) before += source->acked;
    Duration most{};
    for (int i = 0; i < 500; ++i) {
      world.run(100us);
      const double bytes = static_cast<double>(world.queued_bytes());
      most = std::max(most, Duration(static_cast<Duration::rep>(bytes * 8 / 10)));
    }
    std::uint64_t after = 0;
    for (const auto& source : world.sources()) after += source->acked;
    mbps[swift] = static_cast<double>(after - before) * 8e-6 / 0.05;
    queue[swift] = most;
  }
  std::printf(
      "    four flows, 10 Gb/s, 50 us: cubic %.0f Mb/s, queue up to %d us; swift %.0f, %d\n",
      mbps[0], static_cast<int>(queue[0] / 1us), mbps[1], static_cast<int>(queue[1] / 1us));
  EXPECT_GT(mbps[1], 9000);
  EXPECT_LT(queue[1], 300us);
  EXPECT_LT(queue[1], queue[0] / 2);
}

}  // namespace
}  // namespace ztcp::sim
