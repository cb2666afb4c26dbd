// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Messages over 1 to 4 flows that run well, stall or die: MsgWorld checks the promises.
#include <gtest/gtest.h>

#include "tests/support/msg_world.h"

namespace ztcp {
namespace {

using testing_support::MsgScript;
using testing_support::MsgWorld;

std::vector<std::size_t> random_sizes(std::uint64_t seed, std::size_t count, std::size_t max) {
  std::mt19937_64 rng(seed);
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < count; ++i) {
    // Small, middle and large ones are equally likely.
    const std::size_t top = std::size_t{1} << (rng() % 21);
    sizes.push_back(rng() % std::min(top + 1, max));
  }
  return sizes;
}

class Flows : public testing::TestWithParam<std::tuple<std::uint32_t, std::uint64_t>> {};

TEST_P(Flows, DeliverEveryByteOnce) {
  const auto [flows, seed] = GetParam();
  MsgScript script;
  script.streams.seed = seed;
  script.session.flows = flows;
  script.session.multi_flow_threshold_bytes = 4096;
  script.sizes = random_sizes(seed, 120, 300'000);
  MsgWorld world(script);
  EXPECT_TRUE(world.run_all()) << world.sender.done << " sent, " << world.receiver.done;
  EXPECT_EQ(world.problem(), "");
  EXPECT_TRUE(world.close_all());
  EXPECT_EQ(world.net.pairs(), flows);
  EXPECT_EQ(world.sender.failed + world.receiver.failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Flows,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Range<std::uint64_t>(1, 6)));

// A flow dies before event 0, 1, 2, ...: the session goes on with any bytes in flight.
class Killed : public testing::TestWithParam<std::tuple<std::uint32_t, bool, std::size_t>> {};

TEST_P(Killed, AFlowThatDiesAtAnyEventLosesNothing) {
  const auto [flows, ack_is_delivery, which] = GetParam();
  MsgScript script;
  script.streams.seed = 11 + which;
  script.streams.max_piece_bytes = 20'000;
  script.session.flows = flows;
  script.session.multi_flow_threshold_bytes = 4096;
  script.set_ack_is_delivery(ack_is_delivery);
  script.kill_pair = which;
  // Unposted, posted and running ahead; empty, tiny, odd and larger than the allowance.
  script.sizes = {1, 0, 100'000, 5000, 200'000, 8192, 0, 992, 993, 300'000, 12'345, 7, 65'536};
  std::size_t events = 10;
  for (std::size_t at = 0; at < events; ++at) {
    script.kill_at = at;
    MsgWorld world(script);
    const bool done = world.run_all();
    if (world.sender.failed != 0 && world.sender.ready == 0) {
      // Before the first stream is open the failure means that there is no listener.
      ASSERT_LT(at, 3U);
      ASSERT_EQ(world.sender.done, 0U);
      continue;
    }
    ASSERT_TRUE(done) << "killed at " << at << ": " << world.sender.done << " sent, "
                      << world.receiver.done << " received; " << world.sender.failed << " "
                      << world.sender.error.where << " / " << world.receiver.failed << " "
                      << world.receiver.error.where;
    ASSERT_EQ(world.problem(), "") << "killed at " << at;
    ASSERT_TRUE(world.close_all()) << "killed at " << at;
    ASSERT_EQ(world.sender.ready, 1U);
    events = std::max(events, world.events());
  }
  EXPECT_GT(events, 100U);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Killed,
                         testing::Combine(testing::Values(1, 2, 4), testing::Bool(),
                                          testing::Range<std::size_t>(0, 2)));

// All sends were done while their buffers were still to be posted, then the process ends and its
// flow dies before event 0, 1, 2, ...
class Ending : public testing::TestWithParam<std::tuple<std::uint32_t, std::size_t>> {};

TEST_P(Ending, ALeavingSenderLosesNoCompletedMessage) {
  const auto [flows, which] = GetParam();
  MsgScript script;
  script.streams.seed = 31 + which;
  script.session.flows = flows;
  script.session.multi_flow_threshold_bytes = 4096;
  script.set_ack_is_delivery(false);
  script.kill_pair = which;
  script.sizes = {1, 0, 20'000, 5000, 12'000, 8192, 0, 992, 993, 30'000, 12'345, 7, 4096};
  script.post_chance = 40;
  std::size_t events = 10;
  bool had_to_wait = false;
  for (std::size_t at = 0; at < events; ++at) {
    script.kill_at = at;
    MsgWorld world(script);
    world.run_until([&] { return world.sender.done == script.sizes.size(); });
    if (world.sender.failed != 0 && world.sender.ready == 0) {
      ASSERT_LT(at, 3U) << "there is no listener";
      continue;
    }
    ASSERT_EQ(world.sender.done, script.sizes.size());
    world.send_session->leave(world.now);
    had_to_wait |= world.receiver.done < world.sender.done && world.send_session->is_finishing();
    ASSERT_TRUE(world.run_until([&] { return !world.send_session->is_finishing(); }))
        << "killed at " << at;
    ASSERT_EQ(world.receiver.done, script.sizes.size()) << "killed at " << at;
    ASSERT_EQ(world.receiver.failed, 0U) << "killed at " << at;
    ASSERT_EQ(world.problem(), "") << "killed at " << at;
    events = std::max(events, world.events());
  }
  EXPECT_GT(events, 100U);
  EXPECT_TRUE(had_to_wait);
}

// The receiver posts its buffers only when the sender has gone.
TEST(EndingBefore, BuffersPostedAfterTheSenderLeftAreFilled) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    MsgScript script;
    script.streams.seed = seed;
    script.session.flows = 1 + static_cast<std::uint32_t>(seed % 2);
    script.set_ack_is_delivery(false);
    script.post_chance = script.send_chance = 0;
    script.sizes = {1, 0, 20'000, 5000, 8192, 993, 12'345, 7};
    MsgWorld world(script);
    ASSERT_TRUE(world.run_until([&] { return world.sender.ready != 0; })) << seed;
    while (world.has_unposted_sends()) world.post_send();
    ASSERT_TRUE(world.run_until([&] { return world.sender.done == script.sizes.size(); })) << seed;
    world.send_session->leave(world.now);
    world.run_until([&] { return !world.send_session->is_finishing(); }, world.events() + seed * 5);
    world.send_session->cut_off();
    world.run_until([] { return false; }, world.events() + 10'000);
    while (world.has_unposted_receives()) world.post_receive();
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done == script.sizes.size(); }))
        << seed;
    ASSERT_EQ(world.receiver.failed, 0U) << seed;
    ASSERT_EQ(world.problem(), "") << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Ending,
                         testing::Combine(testing::Values(1, 2),
                                          testing::Range<std::size_t>(0, 4)));

}  // namespace
}  // namespace ztcp
