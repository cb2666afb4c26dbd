// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Flows of one host over a line slower than the host, with a drop-tail queue in front of it: their
// queueing, loss and fairness. The receiver acknowledges once per turn.
#include "tests/sim/bottleneck.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::sim {
namespace {

struct FewAcks {
  const char* name;
  Duration receiver_turn;
  Duration most_queued;
};
void PrintTo(const FewAcks& c, std::ostream* out) { *out << c.name; }

class SlowStart : public testing::TestWithParam<FewAcks> {};

// RFC 9406 wants eight samples in a round; a receiver that acknowledges once per turn gives fewer
// until the queue holds eight turns. Without the samples slow start did not end: the round trip
// grew from 0.2 ms to the queue's capacity.
TEST_P(SlowStart, QueuesLittleWhenAcksAreFew) {
  Bottleneck world({.round_trip = 200us, .queue = 60ms, .receiver_turn = GetParam().receiver_turn});
  world.open();
  world.run(200ms);
  EXPECT_LT(world.most_queued(), GetParam().most_queued);
  EXPECT_EQ(world.drops(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Bottleneck, SlowStart,
                         testing::Values(FewAcks{"each_frame", 0us, 10ms},
                                         FewAcks{"each_500_us", 500us, 10ms},
                                         FewAcks{"each_1_ms", 1ms, 15ms},
                                         FewAcks{"each_2_ms", 2ms, 30ms},
                                         FewAcks{"each_5_ms", 5ms, 30ms}),
                         [](const auto& test) { return test.param.name; });

struct FastLine {
  std::uint64_t gbps;
  Duration round_trip;
  std::uint32_t queue_kib;
  std::uint64_t most_lost;  // A fixed threshold of 250 us lost two to ten times as many.
};

// A queue that is smaller than the line's bandwidth-delay product overflows before a round trip can
// show it. A larger queue ends slow start when it grows by some 64 KiB, at any line rate.
TEST(Bottleneck, SlowStartOnAFastLineLosesLittle) {
  std::printf("    frames lost in the first 20 ms of a flow, and MiB acknowledged\n");
  for (const FastLine& line :
       {FastLine{10, 20us, 256, 25}, FastLine{10, 20us, 1024, 5}, FastLine{10, 50us, 256, 30},
        FastLine{10, 50us, 1024, 10}, FastLine{10, 200us, 256, 60}, FastLine{100, 20us, 1024, 80},
        FastLine{100, 50us, 1024, 220}}) {
    Bottleneck world({.rate_bits_per_second = line.gbps * 1'000'000'000,
                      .round_trip = line.round_trip,
                      .queue = Duration(line.queue_kib * 8192 / line.gbps),
                      .receiver_turn = 2us,
                      .mtu_bytes = 9000,
                      .sender_turn = 2us});
    const Source& source = world.open();
    world.run(20ms);
    const double mib = static_cast<double>(source.acked) / (1 << 20);
    std::printf("    %3d Gb/s %3d us %4d KiB: %3d lost, %5.1f MiB\n", static_cast<int>(line.gbps),
                static_cast<int>(line.round_trip / 1us), static_cast<int>(line.queue_kib),
                static_cast<int>(world.drops()), mib);
    EXPECT_LE(world.drops(), line.most_lost);
    // The line is full nevertheless: 20 ms of it are 2.38 MiB for each Gb/s.
    EXPECT_GT(mib, 0.94 * 2.38 * static_cast<double>(line.gbps));
  }
}

// 4 MiB are a third of the bytes that 10 Gb/s carry in 10 ms.
TEST(Bottleneck, ReceiveWindowGrowsWithALongPath) {
  Bottleneck world({.rate_bits_per_second = 10'000'000'000,
                    .round_trip = 10ms,
                    .queue = 10ms,
                    .receiver_turn = 20us,
                    .mtu_bytes = 9000,
                    .sender_turn = 20us});
  const Source& source = world.open();
  world.run(300ms);
  const std::uint64_t before = source.acked;
  world.run(200ms);
  const double gbps = static_cast<double>(source.acked - before) * 8e-9 / 0.2;
  std::printf("    10 Gb/s at 10 ms: %.2f Gb/s\n", gbps);
  EXPECT_GT(gbps, 8.5);
}

// A line that is never full, with jitter on the answers: 16 MiB take about as long as without
// jitter if slow start goes on to the receive window.
TEST(Bottleneck, JitterDoesNotEndSlowStart) {
  for (const Duration turn : {Duration(200us), Duration(1ms)})
    for (const Duration jitter : {Duration(0), Duration(300us), Duration(1ms)})
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        Bottleneck world({.rate_bits_per_second = 40'000'000'000,
                          .round_trip = 1ms,
                          .queue = 50ms,
                          .receiver_turn = turn,
                          .jitter = jitter,
                          .seed = seed});
        const Source& source = world.open();
        world.run(turn == 1ms ? 36ms : 26ms);
        EXPECT_GT(source.acked, 16U << 20) << jitter / 1us << " us, seed " << seed;
      }
}

// A flow that starts late finds the queue full of the old one's packets, loses some at a small
// window, and grows from there by a segment per round trip: RFC 9438 section 4.3 asks for that. It
// must not be held down: each half second must bring it more, up to a third of the line.
TEST(Bottleneck, LaterFlowGrowsBesideAnOldOne) {
  std::printf("    a new flow beside an old one, Mb/s in half seconds (500 Mb/s, 10 ms, 1 BDP)\n");
  constexpr double kThird = 500.0 / 3;
  for (int phase = 1; phase <= 4; ++phase) {
    Bottleneck world({.receiver_turn = 200us});
    world.open();
    world.run(5s + phase * 700ms);
    const Source& fresh = world.open();
    std::uint64_t last = 0;
    std::vector<double> mbps;
    for (int half = 0; half < 8; ++half) {
      world.run(500ms);
      mbps.push_back(static_cast<double>(fresh.acked - last) * 16e-6);
      last = fresh.acked;
    }
    std::printf("   ");
    for (const double rate : mbps) std::printf(" %5.0f", rate);
    std::printf("\n");
    EXPECT_GT(mbps[0], 20);
    EXPECT_GT(mbps[3], 2 * 30);
    for (std::size_t half = 1; half < 4; ++half)
      EXPECT_GT(mbps[half], std::min(mbps[half - 1] + 2, kThird));
  }
}

}  // namespace
}  // namespace ztcp::sim
