// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sessions of a verbs connection: seeded traffic, and the checks of the peer's immediates.
#include <tuple>

#include "tests/sim/verbs_traffic.h"

namespace ztcp::sim {
namespace {

const Shape kShapes[] = {{"one", {0}},
                         {"two", {0, 0}},
                         {"three", {0, 0, 0}},
                         {"eight", {0, 0, 0, 0, 0, 0, 0, 0}},
                         {"two_rails", {0, 1}},
                         {"unequal_rails", {0, 1, 2}, {25, 400, 100}},
                         {"rails_of_two", {0, 0, 1, 1}, {100, 10}},
                         {"eight_rails", {0, 1, 2, 3, 4, 5, 6, 7}},
                         {"rdma_and_tcp", {0, 1}, {100, 100}, {1}},
                         {"two_rdma_and_tcp", {0, 0, 1, 2}, {400, 100, 50}, {2}},
                         {"rdma_and_two_of_tcp", {0, 1, 2}, {10, 100, 100}, {1, 2}}};

class VerbsTraffic : public testing::TestWithParam<std::tuple<Shape, std::uint32_t, int>> {};

TEST_P(VerbsTraffic, DeliversEachMessageOnceAndWhole) {
  const auto& [shape, inline_bytes, seed] = GetParam();
  Traffic traffic({.rails = shape.rails,
                   .rates_mbps = shape.rates_mbps,
                   .inline_bytes = inline_bytes,
                   .seed = static_cast<std::uint64_t>(seed),
                   .tcp_rails = shape.tcp_rails,
                   .is_split = seed % 2 != 0},
                  600);
  traffic.run();
  EXPECT_EQ(traffic.has_gone_by_tcp(), !shape.tcp_rails.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, VerbsTraffic,
                         testing::Combine(testing::ValuesIn(kShapes), testing::Values(0, 64),
                                          testing::Range(1, 6)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param).name) + "_inline_" +
                                  std::to_string(std::get<1>(one.param)) + "_seed_" +
                                  std::to_string(std::get<2>(one.param));
                         });

class VerbsSessions : public testing::Test {
 protected:
  void receive(Connection& c, std::span<std::byte> to, int tag = 0) {
    c.wire.right.memory.push_back({to.data(), to.size(), kPayloadKeys});
    const verbs::RecvSession::Buffer buffer{reinterpret_cast<std::uint64_t>(to.data()),
                                            &kPayloadKeys, static_cast<std::uint32_t>(to.size()),
                                            tag};
    ASSERT_TRUE(c.receiver->post({&buffer, 1}));
  }
  // Until no event can happen any more.
  static Status settle(Connection& c) {
    for (int quiet = 0; quiet < 20; ++quiet) {
      while (c.wire.step()) quiet = 0;
      ZTCP_CHECK(c.poll_both());
    }
    return {};
  }
};

TEST_F(VerbsSessions, AMessageThatIsTooLargeIsNotSent) {
  Connection c({});
  Bytes to(100);
  const Bytes from(101);
  receive(c, to, 9);
  ASSERT_TRUE(settle(c));
  const auto outcome = c.sender->post(0, {.bytes = from, .tag = 9, .lkeys = &kLocalKeys});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kTruncated);
  EXPECT_EQ(c.sender->truncated().sent_bytes, 101U);
  EXPECT_EQ(c.sender->truncated().posted_bytes, 100U);
  EXPECT_EQ(c.sender->truncated().tag, 9);
  EXPECT_EQ(c.wire.right.counts.immediates, 0U);
}

TEST_F(VerbsSessions, UnsplitQueuePairsOfARailTakeLargeMessagesInTurn) {
  Connection c({.rails = {0, 0, 0, 1}, .is_split = false});
  Bytes to(200'000);
  const Bytes from(200'000, std::byte{5});
  std::array<int, 4> pieces{};
  for (int i = 0; i < 6; ++i) {
    receive(c, to);
    ASSERT_TRUE(settle(c));
    ASSERT_TRUE(*c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys}));
    while (!c.sender->is_done(0)) {
      c.wire.step();
      for (const auto& one : c.wire.left.completions) ++pieces[one.queue_pair];
      while (!c.wire.left.completions.empty()) {
        const auto told = c.wire.left.completions.front();
        c.wire.left.completions.pop_front();
        ASSERT_TRUE(c.sender->on_completion(told.queue_pair, told.id));
      }
    }
  }
  EXPECT_EQ(pieces, (std::array<int, 4>{2, 2, 2, 6})) << "and each rail has its share";
}

TEST_F(VerbsSessions, ReceivedSizeIsTheSumOfThePieces) {
  for (const std::size_t queue_pairs : {1U, 2U}) {
    Connection c({.rails = std::vector<std::uint32_t>(queue_pairs)});
    Bytes to(20'001'000);
    const Bytes from(20'000'010, std::byte{5});
    receive(c, to);
    const std::uint16_t number = 0;
    ASSERT_TRUE(settle(c));
    ASSERT_TRUE(*c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys}));
    ASSERT_TRUE(settle(c));
    ASSERT_TRUE(c.receiver->is_done(number));
    EXPECT_EQ(c.receiver->received_bytes(number, 0), from.size());
    EXPECT_EQ(to[from.size() - 1], std::byte{5});
    EXPECT_EQ(to[from.size()], std::byte{0});
    EXPECT_EQ(c.wire.right.counts.immediates, queue_pairs);
    EXPECT_EQ(c.wire.problem(), "");
  }
}

TEST_F(VerbsSessions, InvalidImmediatesAndSlotsAreRefused) {
  Connection c({});
  Bytes to(64);
  const auto hear = [&](const verbs::Immediate& told, std::uint32_t size) {
    return c.receiver->on_immediate(0, verbs::encode(told), size).has_value();
  };
  EXPECT_FALSE(hear({.sequence = 1}, 8)) << "nothing is posted";
  receive(c, to);
  EXPECT_FALSE(hear({.slot = 1, .sequence = 1}, 8)) << "another slot";
  EXPECT_FALSE(hear({.sequence = 33}, 8)) << "another post of that slot";
  EXPECT_FALSE(hear({.sequence = 1}, 65)) << "more than posted";
  EXPECT_FALSE(hear({.sequence = 1, .piece = 2, .pieces = 2}, 8)) << "the third of two pieces";
  EXPECT_TRUE(hear({.sequence = 1, .piece = 1, .pieces = 2}, 8));
  EXPECT_FALSE(hear({.sequence = 1, .piece = 1, .pieces = 2}, 8)) << "a second time";
  EXPECT_FALSE(hear({.sequence = 1, .piece = 0, .pieces = 1}, 8)) << "the number of pieces changed";
  EXPECT_FALSE(hear({.sequence = 1, .pieces = 2}, 57)) << "more than posted in all";
  EXPECT_TRUE(hear({.sequence = 1, .pieces = 2}, 56));
  EXPECT_TRUE(c.receiver->is_done(0));
  EXPECT_EQ(c.receiver->received_bytes(0, 0), 64U);
  EXPECT_FALSE(hear({.sequence = 1, .pieces = 2}, 1)) << "it is filled";
  EXPECT_FALSE(c.receiver->on_completion(0, 99));
  EXPECT_FALSE(c.sender->on_completion(0, 0));

  const Bytes from(8);
  c.ring[0] = {.buffers = 9, .sequence = 1};
  EXPECT_FALSE(c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys}))
      << "nine buffers in a group of eight";
}

TEST_F(VerbsSessions, AMessageWithoutAMatchingFreeBufferIsNotTaken) {
  Connection c({});
  const Bytes from(8, std::byte{3});
  EXPECT_FALSE(*c.sender->post(0, {.bytes = from, .lkeys = &kLocalKeys})) << "nothing is posted";
  Bytes to(8);
  receive(c, to, 1);
  ASSERT_TRUE(settle(c));
  EXPECT_FALSE(*c.sender->post(0, {.bytes = from, .tag = 2, .lkeys = &kLocalKeys}))
      << "of another tag";
  EXPECT_TRUE(*c.sender->post(0, {.bytes = from, .tag = 1, .lkeys = &kLocalKeys}));
  EXPECT_FALSE(c.sender->is_done(0));
  EXPECT_FALSE(*c.sender->post(1, {.bytes = from, .tag = 1, .lkeys = &kLocalKeys}))
      << "the buffer is taken";
  ASSERT_TRUE(settle(c));
  EXPECT_TRUE(c.sender->is_done(0));
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace ztcp::sim
