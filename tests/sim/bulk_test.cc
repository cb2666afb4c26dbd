// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Ten megabytes each way through every kind of bad cable, over several seeds.
#include <chrono>
#include <cstdio>
#include <ostream>

#include <gtest/gtest.h>

#include "tests/sim/tcp_world.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* name;
  link::Impairment forward;
  link::Impairment backward;
  std::uint16_t mtu_bytes = 9000;
  std::size_t receive_pieces = 1;
  std::uint32_t super_segment_bytes = 0;
  bool is_ipv6 = false;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

link::Impairment with(link::Impairment impairment) {
  if (impairment.delay == Duration::zero()) impairment.delay = 10us;
  return impairment;
}

Case both(const char* name, const link::Impairment& impairment, std::uint16_t mtu_bytes = 9000) {
  return {name, with(impairment), with(impairment), mtu_bytes};
}

std::vector<Case> cases() {
  std::vector<Case> all{
      both("clean", {}),
      both("clean_1500", {}, 1500),
      both("loss_01_percent", {.loss = 0.001}),
      both("loss_1_percent", {.loss = 0.01}),
      both("loss_5_percent", {.loss = 0.05}),
      both("reordered", {.reorder = 0.02, .reorder_delay = 100us}),
      both("jitter", {.jitter = 30us}),
      both("duplicated", {.duplicate = 0.05}),
      both("corrupted", {.corrupt = 0.02}),
      both("small_mtu", {.loss = 0.002}, 576),
      both("shallow_queue",
           {.delay = 20us, .rate_bits_per_second = 10'000'000'000, .queue_limit_bytes = 64U << 10}),
      both("ecn_marks", {.delay = 20us,
                         .rate_bits_per_second = 10'000'000'000,
                         .queue_limit_bytes = 512U << 10,
                         .ecn_threshold_bytes = 128U << 10}),
      both("everything", {.loss = 0.01,
                          .duplicate = 0.01,
                          .reorder = 0.01,
                          .corrupt = 0.01,
                          .jitter = 20us,
                          .reorder_delay = 200us,
                          .rate_bits_per_second = 10'000'000'000,
                          .queue_limit_bytes = 128U << 10}),
  };
  Case acks_lost{"acks_lost_one_way", with({}), with({.loss = 0.3})};
  all.push_back(acks_lost);
  Case scattered = both("received_in_pieces", {.loss = 0.005});
  scattered.receive_pieces = 4;
  all.push_back(scattered);
  Case super = both("super_segments", {.loss = 0.005});
  super.super_segment_bytes = 65535 - 80;
  all.push_back(super);
  const auto over_ipv6 = [&](const char* name, Case c) {
    c.name = name;
    c.is_ipv6 = true;
    all.push_back(c);
  };
  over_ipv6("ipv6_clean_1500", both("", {}, 1500));
  over_ipv6("ipv6_corrupted", both("", {.corrupt = 0.02}));
  over_ipv6("ipv6_small_mtu", both("", {.loss = 0.01, .reorder = 0.01}, 1280));
  over_ipv6("ipv6_received_in_pieces", scattered);
  over_ipv6("ipv6_super_segments", super);
  return all;
}

TcpWorldOptions options_for(const Case& c, std::uint64_t seed) {
  TcpWorldOptions options;
  options.world.forward = c.forward;
  options.world.backward = c.backward;
  options.world.seed = seed;
  options.world.receive_pieces = c.receive_pieces;
  options.is_ipv6 = c.is_ipv6;
  options.stack.mtu_bytes = c.mtu_bytes;
  options.stack.max_super_segment_bytes = c.super_segment_bytes;
  options.stack.tx_checksum_offload = c.super_segment_bytes != 0;
  options.client_bytes = 10U << 20;
  return options;
}

class Bulk : public testing::TestWithParam<Case> {};

TEST_P(Bulk, DeliversEveryByteInOrderOneWay) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    TcpWorld pair(options_for(GetParam(), seed));
    ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); })) << pair.world.why();
    EXPECT_TRUE(pair.finish()) << pair.world.why() << " held " << pair.world.held_frames();
    EXPECT_EQ(pair.server_stack.counters().rx_bytes, pair.client_data.size());
  }
}

TEST_P(Bulk, DeliversEveryByteInOrderBothWays) {
  TcpWorldOptions options = options_for(GetParam(), /*seed=*/17);
  options.client_bytes = 3U << 20;
  options.server_bytes = 2U << 20;
  TcpWorld pair(options);
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); })) << pair.world.why();
  EXPECT_TRUE(pair.finish()) << pair.world.why() << " held " << pair.world.held_frames();
}

INSTANTIATE_TEST_SUITE_P(Cables, Bulk, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// Guards against collapse, not against a change of speed: each row must stay above a fraction that
// a working recovery reaches with ease. The printed table shows changes.
TEST(Goodput, StaysHighUnderLossOnA10GigabitCable) {
  struct Row {
    double loss;
    double least_gbps;
  };
  std::printf("    loss   MTU   goodput Gb/s (10 Gb/s cable, 100 us round trip, median of 3)\n");
  for (const std::uint16_t mtu : {std::uint16_t{1500}, std::uint16_t{9000}}) {
    for (const Row row :
         {Row{0, 8}, Row{0.0001, 2}, Row{0.001, 0.8}, Row{0.01, 0.2}, Row{0.05, 0.02}}) {
      std::vector<double> gbps;
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        TcpWorldOptions options;
        options.world.seed = seed;
        options.world.forward = {.loss = row.loss,
                                 .delay = 50us,
                                 .rate_bits_per_second = 10'000'000'000,
                                 .queue_limit_bytes = 512U << 10};
        options.world.backward = options.world.forward;
        options.stack.mtu_bytes = mtu;
        options.client_bytes = 8U << 20;
        TcpWorld pair(options);
        ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
        const TimePoint begin = pair.world.now();
        ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); }))
            << pair.world.why();
        const auto taken = std::chrono::duration<double>(pair.world.now() - begin);
        gbps.push_back(static_cast<double>(options.client_bytes) * 8e-9 / taken.count());
      }
      std::sort(gbps.begin(), gbps.end());
      std::printf("%7.2f%% %5d   %6.2f\n", row.loss * 100, mtu, gbps[1]);
      EXPECT_GT(gbps[1], row.least_gbps) << row.loss << " at MTU " << mtu;
    }
  }
}

// Slow start overruns the queue and loses every other frame of a window: more holes than a table of
// fixed size holds. Only the lost frames are sent again, once each.
TEST(Overshoot, OnlyLostFramesAreSentAgain) {
  TcpWorldOptions options;
  options.stack.mtu_bytes = 1500;
  options.stack.tcp.pacing = false;
  options.client_bytes = 40'000'000;
  options.world.forward = {.delay = 5ms, .rate_bits_per_second = 500'000'000};
  options.world.backward = {.delay = 5ms};
  TcpWorld pair(options);
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); })) << pair.world.why();
  const auto& wire = pair.world.wire(0).counters();
  ASSERT_GT(wire.queue_full, 200U) << "no overshoot";
  EXPECT_EQ(pair.server_stack.counters().rx_dropped_no_memory, 0U);
  const std::uint64_t repeats = pair.client_stack.counters().tx_retransmitted_bytes / 1448;
  EXPECT_LE(repeats, wire.queue_full + wire.queue_full / 20);
}

}  // namespace
}  // namespace ztcp::sim
