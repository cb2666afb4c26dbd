// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A switch that marks packets at a low threshold, and DCTCP: the queue stays near the threshold and
// the line stays full.
#include <cstdio>
#include <string_view>

#include "tests/sim/bottleneck.h"
#include "transport/tcp/auto_control.h"
#include "transport/tcp/dctcp.h"

namespace ztcp::sim {
namespace {

constexpr std::uint32_t kMarkedFrames = 30;

tcp::TcpSettings dctcp() {
  tcp::TcpSettings settings;
  settings.congestion_control_by_marks = tcp::make_congestion_control<tcp::Dctcp>;
  return settings;
}

// Chosen by what each connection observes.
tcp::TcpSettings chosen() {
  tcp::TcpSettings settings;
  settings.congestion_control = tcp::make_congestion_control<tcp::AutoControl>;
  settings.congestion_control_by_marks = tcp::make_auto_control_by_marks;
  return settings;
}

struct MarkedLine {
  std::size_t flows;
  std::uint16_t mtu_bytes;
  Duration round_trip;
};

TEST(Marking, DctcpKeepsTheQueueShortAndTheLineFull) {
  std::printf("    flows  MTU   RTT us  queue p50  p99  most (frames)  share of the line  lost\n");
  for (const MarkedLine& line :
       {MarkedLine{1, 1500, 20us}, MarkedLine{2, 1500, 20us}, MarkedLine{8, 1500, 20us},
        MarkedLine{16, 1500, 20us}, MarkedLine{1, 9000, 20us}, MarkedLine{8, 9000, 20us},
        MarkedLine{16, 9000, 20us}, MarkedLine{2, 1500, 50us}, MarkedLine{8, 1500, 50us},
        MarkedLine{2, 9000, 100us}}) {
    const std::uint32_t frame_bytes = line.mtu_bytes + 14U;
    Bottleneck world({.rate_bits_per_second = 10'000'000'000,
                      .round_trip = line.round_trip,
                      .receiver_turn = 2us,
                      .mtu_bytes = line.mtu_bytes,
                      .sender_turn = 2us,
                      .queue_bytes = 4U << 20,
                      .ecn_threshold_bytes = kMarkedFrames * frame_bytes,
                      .tcp = dctcp()});
    for (std::size_t i = 0; i < line.flows; ++i) world.open();
    world.run(20ms);
    const auto acked = [&] {
      std::uint64_t sum = 0;
      for (const auto& source : world.sources()) sum += source->acked;
      return sum;
    };
    const std::uint64_t before = acked();
    std::vector<double> queued;
    for (int i = 0; i < 10'000; ++i) {
      world.run(2us);
      queued.push_back(static_cast<double>(world.queued_bytes()) / frame_bytes);
    }
    std::sort(queued.begin(), queued.end());
    const double payload = line.mtu_bytes - 52.0;
    const double share =
        static_cast<double>(acked() - before) * 8e-10 / 0.02 * frame_bytes / payload;
    const double p99 = queued[queued.size() * 99 / 100];
    std::printf("    %5d  %4d  %6d  %9.1f  %4.1f  %4.1f          %.3f              %d\n",
                static_cast<int>(line.flows), line.mtu_bytes,
                static_cast<int>(line.round_trip / 1us), queued[queued.size() / 2], p99,
                queued.back(), share, static_cast<int>(world.drops()));
    EXPECT_LE(p99, 2 * kMarkedFrames);
    EXPECT_GE(share, 0.98);
  }
}

// Windows of a segment each keep the queue above the threshold, so that every packet is marked for
// as long as they last: these marks are true.
TEST(Marking, ManySteadyFlowsShareTheLine) {
  std::printf("    MTU  control  share of the line  Jain  least Mb/s  lost  timeouts  faults\n");
  for (const std::uint16_t mtu : {std::uint16_t{1500}, std::uint16_t{9000}})
    for (const bool has_dctcp : {false, true}) {
      const std::uint32_t frame_bytes = mtu + 14U;
      Bottleneck world({.rate_bits_per_second = 10'000'000'000,
                        .round_trip = 20us,
                        .receiver_turn = 2us,
                        .mtu_bytes = mtu,
                        .sender_turn = 2us,
                        .queue_bytes = 1U << 20,
                        .ecn_threshold_bytes = 8 * frame_bytes,
                        .tcp = has_dctcp ? dctcp() : tcp::TcpSettings{}});
      for (int i = 0; i < 63; ++i) world.open();
      world.run(100ms);
      std::vector<std::uint64_t> before;
      for (const auto& source : world.sources()) before.push_back(source->acked);
      const std::uint64_t dropped = world.drops();
      const std::uint64_t timeouts = world.sender().counters().rto_fired;
      world.run(300ms);
      double sum = 0;
      double squares = 0;
      double least = 1e9;
      for (std::size_t i = 0; i < before.size(); ++i) {
        const double mbps = static_cast<double>(world.sources()[i]->acked - before[i]) * 8e-6 / 0.3;
        sum += mbps;
        squares += mbps * mbps;
        least = std::min(least, mbps);
      }
      const double jain = sum * sum / squares / static_cast<double>(before.size());
      const std::uint64_t faults = world.sender().counters().ecn_faults;
      std::printf("    %4u  %s  %17.3f  %4.3f  %9.0f  %4u  %8u  %6u\n", mtu,
                  has_dctcp ? "dctcp" : "cubic", sum / 10'000, jain, least,
                  static_cast<unsigned>(world.drops() - dropped),
                  static_cast<unsigned>(world.sender().counters().rto_fired - timeouts),
                  static_cast<unsigned>(faults));
      EXPECT_GE(sum / 10'000, 0.85);
      EXPECT_GE(jain, 0.9);
      EXPECT_EQ(faults, 0U);
    }
}

// A switch for DCTCP marks at 30 frames, one for other controls at a queue of milliseconds.
TEST(Marking, AutoIsDctcpWhereMarksComeEarly) {
  for (const bool is_early : {true, false}) {
    constexpr std::uint32_t kFrameBytes = 1514;
    constexpr std::uint32_t kLateBytes = 625'000;  // 5 ms at 1 Gb/s.
    Bottleneck world({.rate_bits_per_second = is_early ? 10'000'000'000U : 1'000'000'000U,
                      .round_trip = 50us,
                      .receiver_turn = 2us,
                      .mtu_bytes = 1500,
                      .sender_turn = 2us,
                      .queue_bytes = 4 * kLateBytes,
                      .ecn_threshold_bytes = is_early ? kMarkedFrames * kFrameBytes : kLateBytes,
                      .tcp = chosen()});
    for (int i = 0; i < 2; ++i) world.open();
    world.run(is_early ? 100ms : 2s);
    EXPECT_GE(world.sender().counters().ecn_reductions, tcp::AutoControl::kEarlyMarks);
    const auto change = world.sender().take_control_change();
    ASSERT_EQ(change.has_value(), is_early);
    if (!is_early) continue;
    EXPECT_EQ(std::string_view(change->now), "dctcp");
    std::vector<double> queued;
    const auto acked = [&] { return world.sources()[0]->acked + world.sources()[1]->acked; };
    const std::uint64_t before = acked();
    for (int i = 0; i < 10'000; ++i) {
      world.run(2us);
      queued.push_back(static_cast<double>(world.queued_bytes()) / kFrameBytes);
    }
    std::sort(queued.begin(), queued.end());
    const double share = static_cast<double>(acked() - before) * 8e-10 / 0.02 * kFrameBytes / 1448;
    std::printf("    auto: queue p99 %.1f frames, share of the line %.3f\n", queued[9900], share);
    EXPECT_LE(queued[9900], 2 * kMarkedFrames);
    EXPECT_GE(share, 0.98);
  }
}

}  // namespace
}  // namespace ztcp::sim
