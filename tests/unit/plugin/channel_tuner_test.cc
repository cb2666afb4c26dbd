// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/channel_tuner.h"

#include <array>
#include <cstddef>
#include <optional>

#include <gtest/gtest.h>

#include "plugin/collnet_sizes.h"

namespace ztcp::plugin {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kAlgorithms = 7;
constexpr std::size_t kProtocols = 3;
// An algorithm of NCCL's between tree and PAT, unknown to the tuner.
constexpr int kNvls = 4;
constexpr CollnetRows kAllRows = ~CollnetRows{0};

// Possible costs of a small collective in NCCL's model: a ring with LL first.
class Costs {
 public:
  Costs() {
    all_.fill(-1);
    set(NCCL_ALGO_RING, NCCL_PROTO_LL, 20);
    set(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE, 50);
    set(NCCL_ALGO_TREE, NCCL_PROTO_LL, 30);
    set(NCCL_ALGO_TREE, NCCL_PROTO_SIMPLE, 60);
  }
  void set(int algorithm, int protocol, float cost) {
    all_[static_cast<std::size_t>(algorithm) * kProtocols + static_cast<std::size_t>(protocol)] =
        cost;
  }
  CostTable table() { return {all_, kProtocols}; }
  friend bool operator==(const Costs&, const Costs&) = default;

 private:
  std::array<float, kAlgorithms * kProtocols> all_{};
};

ChannelTuner over_sockets(std::size_t ranks, std::size_t hosts) {
  return {TransportKind::kSockets, ranks, hosts};
}

int channels(const ChannelTuner& tuner, std::size_t bytes,
             ncclFunc_t collective = ncclFuncAllReduce) {
  Costs costs;
  CostTable table = costs.table();
  return tuner.tune(collective, bytes, table);
}

TEST(ChannelTuner, EachChannelGetsAtLeast64KibPerStep) {
  const ChannelTuner two = over_sockets(2, 2);
  EXPECT_EQ(channels(two, 8), 1);
  EXPECT_EQ(channels(two, 0), 1);
  EXPECT_EQ(channels(two, 128 * kKiB), 1);
  EXPECT_EQ(channels(two, 256 * kKiB - 1), 1);
  EXPECT_EQ(channels(two, 256 * kKiB), 2);
  EXPECT_EQ(channels(two, 512 * kKiB), 4);
  EXPECT_EQ(channels(two, 1024 * kKiB), 4);
  EXPECT_EQ(channels(two, 2048 * kKiB), 8);
  EXPECT_EQ(channels(two, 4096 * kKiB - 1), 15);
  EXPECT_EQ(channels(two, 4096 * kKiB), 0) << "as many as NCCL likes";
  EXPECT_EQ(channels(two, std::size_t{1} << 40), 0);
  // A ring of more ranks moves fewer bytes per step.
  const ChannelTuner eight = over_sockets(8, 8);
  EXPECT_EQ(channels(eight, 512 * kKiB), 1);
  EXPECT_EQ(channels(eight, 1024 * kKiB), 2);
}

TEST(ChannelTuner, TunesAllGatherAndReduceScatter) {
  const ChannelTuner tuner = over_sockets(2, 2);
  EXPECT_EQ(channels(tuner, 512 * kKiB, ncclFuncAllGather), 4);
  EXPECT_EQ(channels(tuner, 512 * kKiB, ncclFuncReduceScatter), 4);
  EXPECT_EQ(channels(tuner, 512 * kKiB, ncclFuncBroadcast), 0);
  EXPECT_EQ(channels(tuner, 512 * kKiB, ncclFuncReduce), 0);
}

// Each rank of a host is a process that sends.
TEST(ChannelTuner, EachRankOfAHostGetsTheSameNumber) {
  const ChannelTuner four_each = over_sockets(8, 2);
  EXPECT_EQ(channels(four_each, 8), 4);
  EXPECT_EQ(channels(four_each, 1024 * kKiB), 8);
  EXPECT_EQ(channels(four_each, 2048 * kKiB), 0);
  EXPECT_EQ(channels(over_sockets(32, 2), 8), 0) << "all that NCCL has";
}

TEST(ChannelTuner, LeavesCollectivesInsideAHostToNccl) {
  EXPECT_EQ(channels(over_sockets(8, 1), 8), 0);
  EXPECT_EQ(channels(over_sockets(1, 1), 8), 0);
  EXPECT_EQ(channels(over_sockets(0, 0), 8), 0);
  EXPECT_EQ(channels(over_sockets(2, 3), 8), 0) << "no such thing";
}

TEST(ChannelTuner, LeavesAlgorithmsItDoesNotKnowToNccl) {
  Costs costs;
  costs.set(kNvls, NCCL_PROTO_SIMPLE, 1);
  CostTable table = costs.table();
  EXPECT_EQ(over_sockets(2, 2).tune(ncclFuncAllReduce, 8, table), 0);
  EXPECT_TRUE(table.has(kNvls, NCCL_PROTO_SIMPLE));
  std::array<float, 3> nothing{-1, -1, -1};
  CostTable empty(nothing, kProtocols);
  EXPECT_EQ(over_sockets(2, 2).tune(ncclFuncAllReduce, 8, empty), 0);
}

TEST(ChannelTuner, ATreeOfManyRanksSendsAllBytes) {
  Costs costs;
  costs.set(NCCL_ALGO_TREE, NCCL_PROTO_SIMPLE, 1);
  CostTable table = costs.table();
  EXPECT_EQ(over_sockets(4, 4).tune(ncclFuncAllReduce, 1024 * kKiB, table), 8);
  CostTable same = costs.table();
  EXPECT_EQ(over_sockets(2, 2).tune(ncclFuncAllReduce, 1024 * kKiB, same), 4);
}

TEST(ChannelTuner, BarsLlForLargeSteps) {
  const ChannelTuner tuner = over_sockets(2, 2);
  Costs costs;
  CostTable table = costs.table();
  tuner.tune(ncclFuncAllReduce, 128 * kKiB - 1, table);
  EXPECT_TRUE(table.has(NCCL_ALGO_RING, NCCL_PROTO_LL));
  tuner.tune(ncclFuncAllReduce, 128 * kKiB, table);
  EXPECT_FALSE(table.has(NCCL_ALGO_RING, NCCL_PROTO_LL));
  EXPECT_FALSE(table.has(NCCL_ALGO_TREE, NCCL_PROTO_LL));
  EXPECT_TRUE(table.has(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE));
}

// There a message costs no system call.
TEST(ChannelTuner, OverTheUserspaceTcpFourChannelsAreTheMaximum) {
  const ChannelTuner two(TransportKind::kUstack, 2, 2);
  EXPECT_EQ(channels(two, 8), 1);
  EXPECT_EQ(channels(two, 8 * kKiB - 1), 1);
  EXPECT_EQ(channels(two, 8 * kKiB), 2);
  EXPECT_EQ(channels(two, 16 * kKiB), 2);
  EXPECT_EQ(channels(two, 24 * kKiB), 3);
  EXPECT_EQ(channels(two, 32 * kKiB), 4);
  EXPECT_EQ(channels(two, std::size_t{1} << 40), 4);
  const ChannelTuner four(TransportKind::kUstack, 4, 4);
  EXPECT_EQ(channels(four, 32 * kKiB), 2);
  EXPECT_EQ(channels(four, 64 * kKiB), 4);
  const ChannelTuner eight_each(TransportKind::kUstack, 16, 2);
  EXPECT_EQ(channels(eight_each, 8), 8);
  EXPECT_EQ(channels(eight_each, std::size_t{1} << 40), 32) << "NCCL takes no more than it has";
}

TEST(ChannelTuner, OverTheUserspaceTcpNcclChoosesTheProtocol) {
  Costs costs;
  CostTable table = costs.table();
  ChannelTuner(TransportKind::kUstack, 2, 2).tune(ncclFuncAllReduce, 1024 * kKiB, table);
  EXPECT_TRUE(table.has(NCCL_ALGO_RING, NCCL_PROTO_LL));
}

class CollnetChoice : public testing::Test {
 protected:
  // NCCL's model has CollNet at second place.
  CollnetChoice() {
    costs_.set(NCCL_ALGO_COLLNET_CHAIN, NCCL_PROTO_SIMPLE, 25);
    costs_.set(NCCL_ALGO_COLLNET_DIRECT, NCCL_PROTO_SIMPLE, 25);
    costs_.set(kNvls, NCCL_PROTO_SIMPLE, 25);
  }
  // The algorithm that NCCL will choose.
  int chosen(const ChannelTuner& tuner, std::size_t bytes,
             ncclFunc_t collective = ncclFuncAllReduce) {
    table_ = costs_;
    CostTable table = table_.table();
    tuner.tune(collective, bytes, table);
    return table.cheapest_algorithm();
  }
  bool is_left(int algorithm) { return table_.table().has(algorithm); }

  Costs costs_;
  Costs table_;
  static ChannelTuner tuner_at(std::uint32_t speed_mbps) {
    return {TransportKind::kSockets, 2, 2,
            collnet_rows(TransportKind::kSockets, reduce::Wire::kBfloat16, speed_mbps)};
  }

  const ChannelTuner rounded_ = tuner_at(25'000);
};

TEST_F(CollnetChoice, MeasuredSizesAreOffered) {
  for (const CollnetSizes& row : kCollnetSizes) {
    const ChannelTuner tuner(row.network, row.ranks, row.hosts,
                             collnet_rows(row.network, row.wire, row.most_speed_mbps));
    for (const std::size_t bytes : {row.least_bytes, row.most_bytes}) {
      EXPECT_EQ(chosen(tuner, bytes), NCCL_ALGO_COLLNET_CHAIN) << bytes;
      EXPECT_FALSE(is_left(NCCL_ALGO_COLLNET_DIRECT));
      EXPECT_FALSE(is_left(kNvls));
    }
  }
}

TEST_F(CollnetChoice, OtherSizesAndJobsAreNotOffered) {
  costs_.set(NCCL_ALGO_COLLNET_CHAIN, NCCL_PROTO_SIMPLE, 1);
  for (const std::size_t bytes : {8 * kKiB, 256 * kKiB}) {
    EXPECT_NE(chosen(rounded_, bytes), NCCL_ALGO_COLLNET_CHAIN) << bytes;
    EXPECT_FALSE(is_left(NCCL_ALGO_COLLNET_CHAIN));
  }
  const auto is_offered = [&](TransportKind network, std::size_t ranks, std::size_t hosts,
                              reduce::Wire wire) {
    return chosen({network, ranks, hosts, collnet_rows(network, wire, 25'000)}, 4096 * kKiB) ==
           NCCL_ALGO_COLLNET_CHAIN;
  };
  EXPECT_TRUE(is_offered(TransportKind::kSockets, 2, 2, reduce::Wire::kBfloat16));
  EXPECT_FALSE(is_offered(TransportKind::kSockets, 2, 2, reduce::Wire::kAsIs));
  EXPECT_FALSE(is_offered(TransportKind::kUstack, 2, 2, reduce::Wire::kBfloat16));
  EXPECT_FALSE(is_offered(TransportKind::kSockets, 16, 2, reduce::Wire::kBfloat16));
  EXPECT_FALSE(is_offered(TransportKind::kSockets, 4, 4, reduce::Wire::kBfloat16));
}

TEST_F(CollnetChoice, FasterNicsAreOfferedFewerSizes) {
  costs_.set(NCCL_ALGO_COLLNET_CHAIN, NCCL_PROTO_SIMPLE, 1);
  const auto is_offered = [&](std::uint32_t speed_mbps, std::size_t bytes) {
    return chosen(tuner_at(speed_mbps), bytes) == NCCL_ALGO_COLLNET_CHAIN;
  };
  EXPECT_TRUE(is_offered(25'000, 1024 * kKiB));
  EXPECT_FALSE(is_offered(50'000, 1024 * kKiB));
  EXPECT_TRUE(is_offered(50'000, 16384 * kKiB));
  EXPECT_FALSE(is_offered(100'000, 16384 * kKiB));
  EXPECT_TRUE(is_offered(100'000, 64 * kKiB));
  EXPECT_FALSE(is_offered(200'000, 64 * kKiB));
}

// After a refusal NCCL's table has no CollNet, and hosts of any speed answer alike.
TEST_F(CollnetChoice, WithoutAGroupTheSpeedChangesNothing) {
  Costs without;
  without.set(kNvls, NCCL_PROTO_SIMPLE, -1);
  for (const std::size_t bytes : {64 * kKiB, 1024 * kKiB, 16384 * kKiB}) {
    Costs slow = without;
    Costs fast = without;
    Costs off = without;
    CostTable slow_table = slow.table();
    CostTable fast_table = fast.table();
    CostTable off_table = off.table();
    const int channels = over_sockets(2, 2).tune(ncclFuncAllReduce, bytes, off_table);
    EXPECT_EQ(tuner_at(25'000).tune(ncclFuncAllReduce, bytes, slow_table), channels);
    EXPECT_EQ(tuner_at(200'000).tune(ncclFuncAllReduce, bytes, fast_table), channels);
    EXPECT_EQ(slow, off);
    EXPECT_EQ(fast, off);
  }
}

// NCCL_ALGO=allreduce:collnetchain, for one.
TEST_F(CollnetChoice, AnAlgorithmThatTheUserLeftAloneStays) {
  for (const int algorithm : {NCCL_ALGO_TREE, NCCL_ALGO_RING})
    for (const int protocol : {NCCL_PROTO_LL, NCCL_PROTO_SIMPLE})
      costs_.set(algorithm, protocol, -1);
  costs_.set(kNvls, NCCL_PROTO_SIMPLE, -1);
  costs_.set(NCCL_ALGO_COLLNET_DIRECT, NCCL_PROTO_SIMPLE, -1);
  EXPECT_EQ(chosen(rounded_, 8 * kKiB), NCCL_ALGO_COLLNET_CHAIN);
  EXPECT_EQ(chosen(rounded_, 65536 * kKiB), NCCL_ALGO_COLLNET_CHAIN);
}

TEST_F(CollnetChoice, IsLeftToNcclWhereCollnetIsOff) {
  const ChannelTuner off(TransportKind::kSockets, 2, 2);
  EXPECT_EQ(chosen(off, 8 * kKiB), NCCL_ALGO_RING);
  EXPECT_TRUE(is_left(NCCL_ALGO_COLLNET_CHAIN));
}

// NCCL's model would take it.
TEST_F(CollnetChoice, AllGatherAndReduceScatterAreNotOffered) {
  costs_.set(NCCL_ALGO_COLLNET_DIRECT, NCCL_PROTO_SIMPLE, 1);
  costs_.set(kNvls, NCCL_PROTO_SIMPLE, 2);
  for (const std::optional<TransportKind> network :
       {std::optional(TransportKind::kSockets), std::optional<TransportKind>()}) {
    const ChannelTuner tuner(network, 2, 2, kAllRows);
    for (const ncclFunc_t collective : {ncclFuncAllGather, ncclFuncReduceScatter})
      for (const std::size_t bytes : {8 * kKiB, 128 * kKiB, 4096 * kKiB}) {
        EXPECT_EQ(chosen(tuner, bytes, collective), NCCL_ALGO_RING) << bytes;
        EXPECT_FALSE(is_left(NCCL_ALGO_COLLNET_DIRECT));
        EXPECT_FALSE(is_left(kNvls));
      }
  }
}

// ZTCP_TUNER=off, or a network without a rule.
TEST_F(CollnetChoice, WithoutARuleAllReduceIsLeftToNccl) {
  const ChannelTuner tuner(std::nullopt, 2, 2, CollnetRows{0});
  costs_.set(NCCL_ALGO_COLLNET_CHAIN, NCCL_PROTO_SIMPLE, 1);
  EXPECT_EQ(chosen(tuner, 8 * kKiB), NCCL_ALGO_COLLNET_CHAIN);
  Costs costs = costs_;
  CostTable table = costs.table();
  EXPECT_EQ(tuner.tune(ncclFuncAllGather, 512 * kKiB, table), 0);
  EXPECT_TRUE(table.has(NCCL_ALGO_RING, NCCL_PROTO_LL));
  const ChannelTuner inside(std::nullopt, 2, 1, CollnetRows{0});
  chosen(inside, 8 * kKiB, ncclFuncAllGather);
  EXPECT_TRUE(is_left(kNvls)) << "inside a host it needs no CollNet";
}

// NCCL_ALGO=allgather:collnetdirect, for one.
TEST_F(CollnetChoice, AllGatherByCollnetAloneStays) {
  for (const int algorithm : {NCCL_ALGO_TREE, NCCL_ALGO_RING})
    for (const int protocol : {NCCL_PROTO_LL, NCCL_PROTO_SIMPLE})
      costs_.set(algorithm, protocol, -1);
  costs_.set(kNvls, NCCL_PROTO_SIMPLE, -1);
  costs_.set(NCCL_ALGO_COLLNET_CHAIN, NCCL_PROTO_SIMPLE, -1);
  EXPECT_EQ(chosen(rounded_, 8 * kKiB, ncclFuncAllGather), NCCL_ALGO_COLLNET_DIRECT);
}

TEST_F(CollnetChoice, IsOfferedWhereNcclHasIt) {
  costs_.set(NCCL_ALGO_COLLNET_CHAIN, NCCL_PROTO_SIMPLE, -1);
  EXPECT_NE(chosen(rounded_, 4096 * kKiB), NCCL_ALGO_COLLNET_CHAIN);
  EXPECT_NE(chosen(rounded_, 4096 * kKiB, ncclFuncAllGather), NCCL_ALGO_COLLNET_CHAIN);
}

// NCCL_PROTO=LL must be respected.
TEST(ChannelTuner, KeepsLlWithoutAnotherProtocol) {
  Costs costs;
  costs.set(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE, -1);
  costs.set(NCCL_ALGO_TREE, NCCL_PROTO_SIMPLE, -1);
  CostTable table = costs.table();
  EXPECT_EQ(over_sockets(2, 2).tune(ncclFuncAllReduce, 512 * kKiB, table), 4);
  EXPECT_TRUE(table.has(NCCL_ALGO_RING, NCCL_PROTO_LL));
}

// NCCL 2.22 has six algorithms; another release might have fewer.
TEST(CostTable, HasNothingBeyondItsEnd) {
  std::array<float, 2 * kProtocols> costs{};
  CostTable table(costs, kProtocols);
  EXPECT_TRUE(table.has(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE));
  EXPECT_FALSE(table.has(NCCL_ALGO_PAT, NCCL_PROTO_LL));
  table.bar(NCCL_ALGO_PAT, NCCL_PROTO_LL);
  CostTable narrow(costs, 1);
  EXPECT_FALSE(narrow.has(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE));
}

}  // namespace
}  // namespace ztcp::plugin
