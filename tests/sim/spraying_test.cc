// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Switches that spray packets over paths of different delays: frames arrive out of order all the
// time, and none of them is taken for lost.
#include <chrono>
#include <cstdio>

#include "tests/sim/bottleneck.h"

namespace ztcp::sim {
namespace {

struct Spray {
  std::uint16_t mtu_bytes;
  Duration round_trip;
  std::uint32_t paths;
  Duration skew;
};

TEST(Spraying, FillsTheLineWithoutNeedlessRetransmissions) {
  std::printf("    MTU   RTT us  paths  skew us  share of the line  repeated of 10,000\n");
  for (const Spray& spray : {Spray{1500, 50us, 4, 100us}, Spray{9000, 50us, 4, 100us},
                             Spray{9000, 200us, 4, 100us}, Spray{9000, 50us, 8, 20us}}) {
    Bottleneck world({.rate_bits_per_second = 10'000'000'000,
                      .round_trip = spray.round_trip,
                      .receiver_turn = 2us,
                      .mtu_bytes = spray.mtu_bytes,
                      .sender_turn = 2us,
                      .queue_bytes = 4U << 20,
                      .paths = spray.paths,
                      .path_skew = spray.skew});
    const Source& source = world.open();
    world.run(20ms);  // RACK learns how late segments may be.
    const std::uint64_t acked = source.acked;
    const tcp::Counters before = world.sender().counters();
    world.run(100ms);
    const tcp::Counters& after = world.sender().counters();
    const double payload = spray.mtu_bytes - 52.0;
    const double share = static_cast<double>(source.acked - acked) * 8e-10 / 0.1 *
                         (spray.mtu_bytes + 14.0) / payload;
    const double repeated =
        static_cast<double>(after.tx_retransmitted_bytes - before.tx_retransmitted_bytes) /
        payload / static_cast<double>(after.tx_segments - before.tx_segments) * 10'000;
    std::printf("    %4u  %6d  %5u  %7d  %17.3f  %18.1f\n", spray.mtu_bytes,
                static_cast<int>(spray.round_trip / 1us), spray.paths,
                static_cast<int>(spray.skew / 1us), share, repeated);
    EXPECT_GE(share, 0.95);
    EXPECT_LT(repeated, 1);
    EXPECT_EQ(world.drops(), 0U);
  }
}

}  // namespace
}  // namespace ztcp::sim
