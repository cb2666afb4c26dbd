// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Several tags on one session: sends and posts in any order to each other, buffers in groups, flows
// that die; no tag ever waits for another's buffers.
#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/msg_world.h"

namespace ztcp {
namespace {

using testing_support::MsgScript;
using testing_support::MsgWorld;

// NCCL's limit of posted buffers on a connection: 32 receives of 8 buffers.
constexpr std::size_t kMostBuffers = 256;

// Random tags and sizes, and the buffers posted in another order, except those of one tag.
MsgScript random_script(std::uint64_t seed, std::uint32_t tags, std::size_t messages) {
  MsgScript script;
  script.streams.seed = seed;
  script.session.multi_flow_threshold_bytes = 4096;
  script.post_ahead = kMostBuffers;
  script.group = 8;
  script.post_chance = 20;
  std::mt19937_64 rng(seed);
  std::map<std::uint32_t, std::vector<std::size_t>> of_tag;
  for (std::size_t i = 0; i < messages; ++i) {
    script.sizes.push_back(rng() % ((std::size_t{1} << rng() % 17) + 1));
    script.tags.push_back(static_cast<std::uint32_t>(rng() % tags) * 7);
    of_tag[script.tags.back()].push_back(i);
  }
  while (!of_tag.empty()) {
    auto lane = std::next(of_tag.begin(), static_cast<std::ptrdiff_t>(rng() % of_tag.size()));
    // Runs of one tag, so that buffers wait for messages and messages for buffers.
    for (std::size_t run = 1 + rng() % 20; run != 0 && !lane->second.empty(); --run) {
      script.receive_order.push_back(lane->second.front());
      lane->second.erase(lane->second.begin());
    }
    if (lane->second.empty()) of_tag.erase(lane);
  }
  return script;
}

using TagsAndSeed = std::tuple<std::uint32_t, std::uint64_t>;
class Lanes : public testing::TestWithParam<TagsAndSeed> {};

TEST_P(Lanes, EachTagMatchesInPostingOrder) {
  const auto [tags, seed] = GetParam();
  MsgScript script = random_script(seed, tags, 250);
  script.session.flows = seed % 2 == 0 ? 4 : 1;
  script.set_ack_is_delivery(seed % 3 != 0);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_all()) << world.sender.done << " sent, " << world.receiver.done << " "
                               << world.sender.error.where << "/" << world.receiver.error.where;
  EXPECT_EQ(world.problem(), "");
  EXPECT_TRUE(world.close_all());
  EXPECT_EQ(world.sender.failed + world.receiver.failed, 0U);
}

TEST_P(Lanes, FlowsThatDieLoseNoMessageOfAnyTag) {
  const auto [tags, seed] = GetParam();
  MsgScript script = random_script(seed + 1000, tags, 120);
  script.set_ack_is_delivery(seed % 2 == 0);
  script.session.max_redials = 20;
  script.session.redial_window = std::chrono::hours(1);
  script.session.eager_allowance_bytes = seed % 3 == 0 ? 4096 : 65'536;
  script.kill_chance = 80;
  MsgWorld world(script);
  ASSERT_TRUE(world.run_all()) << world.sender.done << " sent, " << world.receiver.done << " "
                               << world.sender.error.where << "/" << world.receiver.error.where;
  EXPECT_EQ(world.problem(), "");
  EXPECT_GT(world.net.pairs(), 4U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Lanes,
                         testing::Combine(testing::Values(2, 3, 8, 100),
                                          testing::Range<std::uint64_t>(1, 9)));

// NCCL's bootstrap over the plugin: the steps of a ring over all ranks, each with its own tag.
class Rings : public testing::TestWithParam<std::tuple<std::uint32_t, unsigned>> {};

TEST_P(Rings, RingsOfAnyLengthUseOneTagForEachStep) {
  const auto [steps, seed] = GetParam();
  MsgScript script;
  script.streams.seed = seed;
  script.set_ack_is_delivery(seed % 2 == 0);
  script.session.flows = 2;
  script.session.multi_flow_threshold_bytes = 512;
  script.kill_chance = seed == 0 ? 0 : steps / 4;
  script.session.max_redials = 20;
  script.session.redial_window = std::chrono::hours(1);
  for (std::uint32_t round = 0; round < 2; ++round) {  // Each tag comes again.
    for (std::uint32_t tag = 0; tag < steps; ++tag) {
      script.sizes.push_back(tag % 1000);
      script.tags.push_back(tag);
    }
  }
  MsgWorld world(script);
  ASSERT_TRUE(world.run_all()) << world.sender.done << " sent, " << world.receiver.done << " "
                               << world.sender.error.where << "/" << world.receiver.error.where;
  EXPECT_EQ(world.problem(), "");
  EXPECT_TRUE(world.close_all());
  EXPECT_EQ(world.sender.failed + world.receiver.failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Of, Rings,
                         testing::Combine(testing::Values(129, 1000, 5000),
                                          testing::Values(0U, 1U, 2U)));

// A flow dies before event 0, 1, 2, ...
TEST(LanesKilled, AFlowThatDiesAtAnyEventLosesNothing) {
  std::size_t events = 10;
  for (std::size_t at = 0; at < events; ++at) {
    MsgScript script = random_script(5, 3, 25);
    script.session.flows = 2;
    script.streams.max_piece_bytes = 20'000;
    script.kill_at = at;
    MsgWorld world(script);
    const bool done = world.run_all();
    if (world.sender.failed != 0 && world.sender.ready == 0) {
      ASSERT_LT(at, 3U) << "there is no listener";
      continue;
    }
    ASSERT_TRUE(done) << "killed at " << at << ": " << world.sender.done << " sent, "
                      << world.receiver.done << " received";
    ASSERT_EQ(world.problem(), "") << "killed at " << at;
    ASSERT_TRUE(world.close_all()) << "killed at " << at;
    events = std::max(events, world.events());
  }
  EXPECT_GT(events, 100U);
}

// The first messages have a tag for which no buffer is posted until all others are done.
struct Unposted {
  const char* name;
  std::size_t messages;
  std::size_t size_bytes;
};
class AnUnpostedTag : public testing::TestWithParam<Unposted> {};

TEST_P(AnUnpostedTag, ATagWithoutBuffersDoesNotDelayOthers) {
  constexpr std::size_t kOthers = 10'000;
  const auto [name, messages, size_bytes] = GetParam();
  MsgScript script;
  script.post_ahead = kMostBuffers;
  script.sizes.assign(messages, size_bytes);
  script.tags.assign(messages, 5);
  for (std::size_t i = 0; i < kOthers; ++i) {
    script.sizes.push_back(i % 3000);
    script.tags.push_back(6);
  }
  script.receive_order.resize(script.sizes.size());
  std::iota(script.receive_order.begin(), script.receive_order.end(), 0);
  std::rotate(script.receive_order.begin(),
              script.receive_order.begin() + static_cast<std::ptrdiff_t>(messages),
              script.receive_order.end());
  script.post_chance = 0;
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.recv_session != nullptr; }));
  for (std::size_t i = 0; i < kOthers; ++i) {
    world.post_receive();
    if (i % 32 != 31 && i + 1 != kOthers) continue;
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done == i + 1; }))
        << i << " " << world.problem();
  }
  EXPECT_EQ(world.receiver.done, kOthers);
  for (std::size_t i = 0; i < messages; ++i) world.post_receive();
  EXPECT_TRUE(world.run_all());
  EXPECT_EQ(world.problem(), "");
  EXPECT_TRUE(world.close_all());
}

INSTANTIATE_TEST_SUITE_P(Of, AnUnpostedTag,
                         testing::Values(Unposted{"one_message", 1, 5000},
                                         Unposted{"empty_messages", 31, 0},
                                         Unposted{"more_than_the_allowance", 31, 100'000}),
                         [](const auto& test) { return test.param.name; });

// The unposted bytes that a receiver takes are bounded for all tags together.
TEST(LanesWithoutBuffers, TagsWithoutBuffersShareTheAllowanceAndTheCount) {
  MsgScript script;
  script.post_chance = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    script.sizes.push_back(1);
    script.tags.push_back(i);
  }
  MsgWorld world(script);
  while (world.step()) {
  }
  EXPECT_EQ(world.problem(), "");
  EXPECT_EQ(world.recv_session->unposted_bytes(), 32U);
  EXPECT_EQ(world.sender.done, 32U);
  EXPECT_EQ(world.sends_outstanding(), 32U);
}

}  // namespace
}  // namespace ztcp
