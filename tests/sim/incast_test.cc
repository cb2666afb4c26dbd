// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Many senders to one receiver: steps of a collective, 4 MiB in all, through a port of 10 Gb/s with
// a shallow queue.
#include <array>
#include <cstdio>

#include "tests/sim/bottleneck.h"
#include "transport/tcp/dctcp.h"

namespace ztcp::sim {
namespace {

constexpr std::size_t kSenders = 63;
constexpr std::uint64_t kStepBytes = 4U << 20;

struct Port {
  std::uint16_t mtu_bytes;
  std::uint32_t queue_kib;
  std::uint32_t marked_frames;  // Threshold; 0: marks nothing.
};

struct Outcome {
  double first = 0;  // Times in shares of the ideal.
  double median = 0;
  double p99 = 0;
  double lost = 0;  // Share of frames.
  std::uint64_t timeouts = 0;
};

class Steps {
 public:
  Steps(const Port& port, bool has_dctcp)
      : frame_bytes_(port.mtu_bytes + 14U),
        world_({.rate_bits_per_second = 10'000'000'000,
                .round_trip = 20us,
                .receiver_turn = 2us,
                .mtu_bytes = port.mtu_bytes,
                .sender_turn = 2us,
                .queue_bytes = port.queue_kib << 10,
                .ecn_threshold_bytes = port.marked_frames * frame_bytes_,
                .tcp = settings(has_dctcp)}) {
    for (std::size_t i = 0; i < kSenders; ++i) world_.open(std::uint64_t{0});
    world_.run(5ms);
    const double payload = port.mtu_bytes - 52.0;
    ideal_ = static_cast<double>(kStepBytes) * frame_bytes_ / payload * 8e-10 + 20e-6;
  }

  // The first step meets ten or two segments of each sender, which nothing has slowed down yet, and
  // the second one those that found no room then: the others are counted without them.
  Outcome run(int steps) {
    Outcome out;
    out.first = std::max(step(), step());
    const auto before = world_.world().wire(0).counters();
    const std::uint64_t timeouts = world_.sender().counters().rto_fired;
    std::vector<double> taken;
    for (int i = 0; i < steps; ++i) taken.push_back(step());
    std::sort(taken.begin(), taken.end());
    out.median = taken[taken.size() / 2];
    out.p99 = taken[taken.size() * 99 / 100];
    const auto& after = world_.world().wire(0).counters();
    out.lost = static_cast<double>(after.queue_full - before.queue_full) /
               static_cast<double>(after.offered - before.offered);
    out.timeouts = world_.sender().counters().rto_fired - timeouts;
    return out;
  }

 private:
  static tcp::TcpSettings settings(bool has_dctcp) {
    tcp::TcpSettings settings;
    if (has_dctcp) settings.congestion_control_by_marks = tcp::make_congestion_control<tcp::Dctcp>;
    return settings;
  }
  double step() {
    const TimePoint begin = world_.now();
    for (const auto& source : world_.sources()) source->send_more(kStepBytes / kSenders);
    const auto is_done = [&] {
      return std::all_of(world_.sources().begin(), world_.sources().end(),
                         [](const auto& source) { return source->is_done(); });
    };
    EXPECT_TRUE(world_.world().run_until(is_done, 10s)) << world_.world().why();
    const double taken = std::chrono::duration<double>(world_.now() - begin).count();
    world_.run(2ms);
    return taken / ideal_;
  }

  std::uint32_t frame_bytes_;
  Bottleneck world_;
  double ideal_ = 0;
};

Outcome measure(const Port& port, bool has_dctcp, int steps) {
  const Outcome out = Steps(port, has_dctcp).run(steps);
  std::printf("    %4u  %4u  %4u  %s  %5.2f  %6.2f  %5.2f  %5.3f  %u\n", port.mtu_bytes,
              port.queue_kib, port.marked_frames, has_dctcp ? "dctcp" : "cubic", out.first,
              out.median, out.p99, out.lost, static_cast<unsigned>(out.timeouts));
  return out;
}

TEST(Incast, DctcpLosesNothingInAShallowQueueThatMarks) {
  std::printf("    MTU   KiB   marks control first  median  p99    lost   RTOs\n");
  for (const Port& port :
       {Port{1500, 100, 8}, Port{1500, 100, 30}, Port{1500, 200, 8}, Port{1500, 200, 30},
        Port{1500, 400, 30}, Port{9000, 200, 8}, Port{9000, 400, 8}, Port{9000, 1600, 30}}) {
    const Outcome out = measure(port, /*has_dctcp=*/true, 100);
    EXPECT_LE(out.median, 1 / 0.9);
    EXPECT_LE(out.p99, 1.3);
    EXPECT_EQ(out.timeouts, 0U);
  }
  // For comparison: queues below a short segment of each sender, CUBIC, and ports without marks.
  for (const Port& port : {Port{9000, 100, 8}, Port{9000, 400, 30}})
    measure(port, /*has_dctcp=*/true, 10);
  for (const std::uint16_t mtu : {std::uint16_t{1500}, std::uint16_t{9000}})
    for (const std::uint32_t queue : {100U, 400U})
      for (const std::uint32_t marks : {0U, 8U})
        measure({mtu, queue, marks}, /*has_dctcp=*/false, 10);
}

}  // namespace
}  // namespace ztcp::sim
