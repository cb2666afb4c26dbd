// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/plan.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "tools/ztcp_perf/pattern.h"
#include "transport/link/impairment.h"

namespace ztcp::perf {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
std::span<T> as(Bytes& bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// All ranks of one operation over ideal connections, advanced in a random order that a network
// could cause. A receive occupies its memory when posted, as in a plugin that copies early; a send
// is read as late as possible. So a plan in which two steps disturb each other fails.
class World {
 public:
  World(Op op, int ranks, std::uint64_t size, std::uint64_t seed) : dice_(seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      Rank r;
      r.plan = make_plan(op, rank, ranks, size);
      r.input.resize(r.plan.input_bytes);
      r.output.resize(r.plan.output_bytes);
      poison(r.output);
      r.posted_receives.resize(r.plan.receives.size());
      r.done_receives.resize(r.plan.receives.size());
      r.done_sends.resize(r.plan.sends.size());
      r.posted_sends.resize(r.plan.sends.size());
      ranks_.push_back(std::move(r));
    }
  }

  struct Rank {
    Plan plan;
    Bytes input;
    Bytes output;
    std::vector<std::size_t> posted_receives;
    std::vector<std::size_t> done_receives;
    std::vector<std::size_t> posted_sends;
    std::vector<std::size_t> done_sends;
  };
  std::vector<Rank>& ranks() { return ranks_; }

  // False if nothing can move although something is left.
  bool run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].plan.own_bytes > 0)
        std::memcpy(ranks_[r].output.data() + ranks_[r].plan.own_offset_bytes,
                    ranks_[r].input.data() + ranks_[r].plan.own_offset_bytes,
                    ranks_[r].plan.own_bytes);
    while (true) {
      std::vector<std::pair<int, std::size_t>> sends;  // Deliverable now.
      bool left = false;
      for (Rank& rank : ranks_) post(rank);
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        for (std::size_t lane = 0; lane < ranks_[r].plan.sends.size(); ++lane) {
          left |= ranks_[r].done_sends[lane] < ranks_[r].plan.sends[lane].steps.size();
          if (ranks_[r].done_sends[lane] < ranks_[r].posted_sends[lane] &&
              receiver_is_ready(static_cast<int>(r), lane))
            sends.emplace_back(static_cast<int>(r), lane);
        }
      }
      if (sends.empty()) return !left;
      const auto [from, lane] = sends[dice_.below(sends.size())];
      deliver(from, lane);
    }
  }

 private:
  void post(Rank& r) {
    for (std::size_t lane = 0; lane < r.plan.receives.size(); ++lane) {
      const auto& steps = r.plan.receives[lane].steps;
      std::size_t& posted = r.posted_receives[lane];
      while (posted < steps.size() && posted < r.done_receives[lane] + kStepsInFlight &&
             steps[posted].after_send <
                 (r.done_sends.empty() ? 0 : static_cast<std::int64_t>(r.done_sends[0]))) {
        if (steps[posted].buffer == Buffer::kOutput)
          poison(std::span(r.output).subspan(steps[posted].offset_bytes, steps[posted].size_bytes));
        ++posted;
      }
    }
    for (std::size_t lane = 0; lane < r.plan.sends.size(); ++lane) {
      const auto& steps = r.plan.sends[lane].steps;
      std::size_t& posted = r.posted_sends[lane];
      while (posted < steps.size() && posted < r.done_sends[lane] + kStepsInFlight &&
             (steps[posted].after_receive == kNoDependency ||
              steps[posted].after_receive < static_cast<std::int64_t>(r.done_receives[0])))
        ++posted;
    }
  }

  std::size_t lane_from(const Rank& to, int from) const {
    for (std::size_t lane = 0; lane < to.plan.receives.size(); ++lane)
      if (to.plan.receives[lane].peer == from) return lane;
    ADD_FAILURE() << "nobody receives from rank " << from;
    return 0;
  }
  bool receiver_is_ready(int from, std::size_t lane) {
    Rank& to = ranks_[static_cast<std::size_t>(
        ranks_[static_cast<std::size_t>(from)].plan.sends[lane].peer)];
    const std::size_t in = lane_from(to, from);
    return to.done_receives[in] < to.posted_receives[in];
  }
  void deliver(int from, std::size_t lane) {
    Rank& sender = ranks_[static_cast<std::size_t>(from)];
    const SendStep& send = sender.plan.sends[lane].steps[sender.done_sends[lane]];
    Rank& to = ranks_[static_cast<std::size_t>(sender.plan.sends[lane].peer)];
    const std::size_t in = lane_from(to, from);
    const ReceiveStep& receive = to.plan.receives[in].steps[to.done_receives[in]];
    ASSERT_EQ(send.size_bytes, receive.size_bytes);
    ASSERT_LE(send.size_bytes, kStepBytes);
    const Bytes& source = send.buffer == Buffer::kInput ? sender.input : sender.output;
    const std::byte* data = source.data() + send.offset_bytes;
    if (receive.sum) {
      for (std::size_t i = 0; i < send.size_bytes; i += sizeof(float)) {
        float a = 0;
        float b = 0;
        std::memcpy(&a, data + i, sizeof a);
        std::memcpy(&b, to.input.data() + receive.offset_bytes + i, sizeof b);
        a += b;
        std::memcpy(to.output.data() + receive.offset_bytes + i, &a, sizeof a);
      }
    } else {
      std::memcpy(to.output.data() + receive.offset_bytes, data, send.size_bytes);
    }
    ++sender.done_sends[lane];
    ++to.done_receives[in];
  }

  link::Dice dice_;
  std::vector<Rank> ranks_;
};

struct Case {
  int ranks;
  std::uint64_t size;
};
class PerfPlan : public testing::TestWithParam<Case> {};

TEST_P(PerfPlan, AllReduceSumsEverythingEverywhere) {
  const int ranks = GetParam().ranks;
  const std::uint64_t size = GetParam().size;
  World world(Op::kAllReduce, ranks, size, 17);
  for (int r = 0; r < ranks; ++r)
    fill_summands(as<float>(world.ranks()[static_cast<std::size_t>(r)].input), r, 3);
  ASSERT_TRUE(world.run()) << "stuck";
  for (auto& rank : world.ranks())
    EXPECT_EQ(count_wrong_sums(as<float>(rank.output), ranks, 3), 0U);
}

TEST_P(PerfPlan, AllToAllDeliversEveryBlock) {
  const int ranks = GetParam().ranks;
  const std::uint64_t size = GetParam().size;
  World world(Op::kAllToAll, ranks, size, 18);
  const auto block = [&](Bytes& bytes, int peer) {
    const std::size_t elements = bytes.size() / 4 / static_cast<std::size_t>(ranks);
    return as<std::uint32_t>(bytes).subspan(static_cast<std::size_t>(peer) * elements, elements);
  };
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      fill_block(block(world.ranks()[static_cast<std::size_t>(from)].input, to), from, to, 4);
  ASSERT_TRUE(world.run()) << "stuck";
  for (int to = 0; to < ranks; ++to)
    for (int from = 0; from < ranks; ++from)
      EXPECT_EQ(count_wrong_block(block(world.ranks()[static_cast<std::size_t>(to)].output, from),
                                  from, to, 4),
                0U);
}

TEST_P(PerfPlan, AllGatherBringsEveryBlockToAll) {
  const int ranks = GetParam().ranks;
  World world(Op::kAllGather, ranks, GetParam().size, 21);
  const auto block = [&](Bytes& bytes, int rank) {
    const std::size_t elements = bytes.size() / 4 / static_cast<std::size_t>(ranks);
    return as<std::uint32_t>(bytes).subspan(static_cast<std::size_t>(rank) * elements, elements);
  };
  for (int r = 0; r < ranks; ++r)
    fill_block(block(world.ranks()[static_cast<std::size_t>(r)].input, r), r, 0, 7);
  ASSERT_TRUE(world.run()) << "stuck";
  for (auto& rank : world.ranks())
    for (int from = 0; from < ranks; ++from)
      EXPECT_EQ(count_wrong_block(block(rank.output, from), from, 0, 7), 0U);
}

TEST_P(PerfPlan, ReduceScatterSumsEachBlockAtItsRank) {
  const int ranks = GetParam().ranks;
  World world(Op::kReduceScatter, ranks, GetParam().size, 22);
  for (int r = 0; r < ranks; ++r)
    fill_summands(as<float>(world.ranks()[static_cast<std::size_t>(r)].input), r, 8);
  ASSERT_TRUE(world.run()) << "stuck";
  for (std::size_t r = 0; r < world.ranks().size(); ++r) {
    const std::span<float> all = as<float>(world.ranks()[r].output);
    const std::size_t elements = all.size() / world.ranks().size();
    EXPECT_EQ(count_wrong_sums(all.subspan(r * elements, elements), ranks, 8, 0, r * elements), 0U);
  }
}

TEST_P(PerfPlan, SendRecvAndPingMoveTheWholeMessage) {
  const int ranks = GetParam().ranks;
  const std::uint64_t size = GetParam().size;
  for (const Op op : {Op::kSendRecv, Op::kPing}) {
    World world(op, ranks, size, 19);
    for (int r = 0; r < ranks; ++r) {
      auto& rank = world.ranks()[static_cast<std::size_t>(r)];
      if (!rank.plan.sends.empty())
        fill_block(as<std::uint32_t>(rank.input), r, rank.plan.sends[0].peer, 5);
    }
    ASSERT_TRUE(world.run()) << "stuck";
    for (int r = 0; r < ranks; ++r) {
      auto& rank = world.ranks()[static_cast<std::size_t>(r)];
      if (rank.plan.receives.empty()) continue;
      EXPECT_EQ(count_wrong_block(as<std::uint32_t>(rank.output), rank.plan.receives[0].peer, r, 5),
                0U);
    }
  }
}

TEST_P(PerfPlan, BroadcastBringsTheRootsDataToAll) {
  const int ranks = GetParam().ranks;
  World world(Op::kBroadcast, ranks, GetParam().size, 20);
  fill_block(as<std::uint32_t>(world.ranks()[0].input), 0, 0, 6);
  ASSERT_TRUE(world.run()) << "stuck";
  EXPECT_TRUE(world.ranks()[0].output.empty());
  for (int r = 1; r < ranks; ++r) {
    auto& output = world.ranks()[static_cast<std::size_t>(r)].output;
    ASSERT_EQ(output.size(), world.ranks()[0].input.size());
    EXPECT_EQ(count_wrong_block(as<std::uint32_t>(output), 0, 0, 6), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PerfPlan,
                         testing::Values(Case{2, 4}, Case{2, 8}, Case{2, 5'000'000}, Case{3, 4},
                                         Case{3, 100}, Case{3, 7'000'004}, Case{4, 8},
                                         Case{4, 1U << 20U}, Case{5, 6'000'000}, Case{8, 64},
                                         Case{8, 10'000'000}),
                         [](const auto& row) {
                           return "ranks" + std::to_string(row.param.ranks) + "_bytes" +
                                  std::to_string(row.param.size);
                         });

TEST(PerfPlan, ThePingEchoWaitsForTheWholeMessage) {
  const Plan echo = make_plan(Op::kPing, 1, 2, 3 * kStepBytes);
  ASSERT_EQ(echo.sends[0].steps.size(), 3U);
  for (const SendStep& step : echo.sends[0].steps) EXPECT_EQ(step.after_receive, 2);
  EXPECT_TRUE(make_plan(Op::kPing, 2, 3, 8).sends.empty()) << "others look on";
}

TEST(PerfPlan, CountsLikeNcclTests) {
  const Plan a = make_plan(Op::kAllToAll, 0, 4, 1000);
  EXPECT_EQ(a.count, 62U) << "elements per peer";
  EXPECT_EQ(a.size_bytes, 992U);
  EXPECT_EQ(make_plan(Op::kAllReduce, 0, 4, 8).count, 2U);
  for (const Op op : {Op::kAllGather, Op::kReduceScatter, Op::kCollNetAllGather}) {
    EXPECT_EQ(make_plan(op, 0, 4, 1000).count, 62U);
    EXPECT_EQ(make_plan(op, 0, 4, 1000).size_bytes, 992U);
    EXPECT_DOUBLE_EQ(bus_factor(op, 4), 0.75);
  }
  EXPECT_DOUBLE_EQ(bus_factor(Op::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kSendRecv, 4), 1);
}

TEST(StepPart, CoversAStepInWholeElements) {
  for (const std::size_t step : {0UL, 4UL, 8UL, 100UL, 524'288UL, 1'000'003UL}) {
    for (std::size_t parts = 1; parts <= 8; ++parts) {
      std::size_t end = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const StepPart part = step_part(step, parts, i);
        EXPECT_EQ(part.offset_bytes, end);
        if (i + 1 < parts && part.offset_bytes + part.size_bytes < step) {
          EXPECT_EQ(part.size_bytes % 4, 0U);
        }
        end += part.size_bytes;
      }
      EXPECT_EQ(end, step) << parts;
    }
  }
}

}  // namespace
}  // namespace ztcp::perf
