// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Both halves of msg/ against each other: credit, stalls, shortages, refusals.
#include <gtest/gtest.h>

#include "tests/support/msg_world.h"
#include "transport/msg/reason.h"

namespace ztcp {
namespace {

using msg::Reason;
using testing_support::MsgScript;
using testing_support::MsgWorld;

TEST(MsgSession, SizesFrom1To5000Arrive) {
  MsgScript script;
  script.session.flows = 4;
  script.session.multi_flow_threshold_bytes = 1000;
  for (std::size_t size = 1; size <= 5000; size += size < 1100 ? 1 : 37)
    script.sizes.push_back(size);
  MsgWorld world(script);
  EXPECT_TRUE(world.run_all());
  EXPECT_EQ(world.problem(), "");
}

TEST(MsgSession, AMessageOf64MiBUsesAllFlows) {
  MsgScript script;
  script.streams.max_piece_bytes = 200'000;
  script.streams.window_bytes = 1U << 20;
  script.streams.ring_bytes = 4U << 20;
  script.sizes = {64U << 20, 5, (64U << 20) + 1};
  MsgWorld world(script);
  EXPECT_TRUE(world.run_all());
  EXPECT_EQ(world.problem(), "");
  EXPECT_EQ(world.net.pairs(), 4U);
  for (std::size_t flow = 0; flow < 4; ++flow)
    EXPECT_GT(world.net.bytes_sent(flow), 10U << 20) << flow;  // All four share the load.
}

TEST(MsgSession, SmallMessagesStayOnOneFlow) {
  MsgScript script;
  script.sizes.assign(50, 128U << 10);
  MsgWorld world(script);
  EXPECT_TRUE(world.run_all());
  EXPECT_EQ(world.net.pairs(), 1U);
}

// The receiver posts only when no other event can happen: it may get no more than the allowance.
class Shortage : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Shortage, KeepsUnpostedBytesWithinTheAllowance) {
  MsgScript script;
  script.session.eager_allowance_bytes = GetParam();
  script.session.multi_flow_threshold_bytes = 4096;
  script.post_chance = 0;
  for (std::size_t i = 0; i < 60; ++i) script.sizes.push_back(i * 977 % 30'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.sender.ready != 0; }));
  while (!world.all_done()) {
    while (world.step()) {
    }
    ASSERT_EQ(world.problem(), "");
    ASSERT_EQ(world.sender.failed + world.receiver.failed, 0U);
    if (world.all_done()) break;
    ASSERT_TRUE(world.has_unposted_receives()) << world.sender.done << " sent";
    world.post_receive();
  }
  EXPECT_EQ(world.problem(), "");
  EXPECT_LE(world.most_unposted_bytes(), GetParam());
  EXPECT_GT(world.most_unposted_bytes() + 8192, GetParam());  // And used.
}

INSTANTIATE_TEST_SUITE_P(Allowances, Shortage, testing::Values(4096, 65'536, 131'072));

TEST(MsgSession, WithoutBuffersAtMost32MessagesWait) {
  MsgScript script;
  script.post_chance = 0;
  script.sizes.assign(100, 1);
  MsgWorld world(script);
  while (world.step()) {
  }
  EXPECT_EQ(world.recv_session->unposted_bytes(), 32U);
  EXPECT_EQ(world.sender.done, 32U);          // Held by the peer, so done.
  EXPECT_EQ(world.sends_outstanding(), 32U);  // 32 more wait here.
}

TEST(MsgSession, AStalledFlowDelaysOnlyItsMessages) {
  MsgScript script;
  script.session.multi_flow_threshold_bytes = 4096;
  script.sizes.assign(200, 50'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 20; }));
  ASSERT_EQ(world.net.pairs(), 4U);
  world.net.stall(2, true);
  // The messages that have chunks on it are stuck, and with them the window of 32; all bytes of the
  // others arrive.
  const std::size_t before = world.receiver.done;
  const std::uint64_t stalled_bytes = world.net.bytes_sent(2);
  world.run_until([] { return false; }, world.events() + 20'000);
  EXPECT_LE(world.net.bytes_sent(2), stalled_bytes + 1);
  EXPECT_GE(world.receiver.done + 4, before + 20);
  EXPECT_EQ(world.problem(), "");
  world.net.stall(2, false);
  EXPECT_TRUE(world.run_all());
  EXPECT_EQ(world.problem(), "");
}

// The flow of the oldest message stalls; later messages are done on the others, and their requests
// are free again. New posts must not take the oldest one's place.
TEST(MsgSession, TheWindowWaitsForItsOldestMessage) {
  int stood_still = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MsgScript script;
    script.streams.seed = seed;
    script.session.multi_flow_threshold_bytes = 4096;
    script.sizes.assign(200, 20'000);
    MsgWorld world(script);
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 20; }));
    world.net.stall(seed % 4, true);
    world.run_until([] { return false; }, world.events() + 20'000);
    ASSERT_EQ(world.problem(), "");
    if (world.all_done()) continue;  // It carried nothing just then.
    ++stood_still;
    const std::size_t done = world.receiver.done;
    world.run_until([] { return false; }, world.events() + 1000);
    EXPECT_EQ(world.receiver.done, done) << seed;
    world.net.stall(seed % 4, false);
    EXPECT_TRUE(world.run_all()) << seed;
    EXPECT_EQ(world.problem(), "");
  }
  EXPECT_GT(stood_still, 10);
}

TEST(MsgSession, AStalledFlowThatDiesGivesItsChunksToTheOthers) {
  MsgScript script;
  script.session.multi_flow_threshold_bytes = 4096;
  script.sizes.assign(100, 50'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 10; }));
  world.net.stall(1, true);
  world.run_until([] { return false; }, world.events() + 5000);
  world.net.kill(1);
  EXPECT_TRUE(world.run_all());
  EXPECT_EQ(world.problem(), "");
  EXPECT_TRUE(world.close_all());
}

// Flows die all the time, all of them, several at once.
class Dying : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Dying, FlowsThatDieAllTheTimeLoseNothing) {
  MsgScript script;
  script.streams.seed = GetParam();
  script.set_ack_is_delivery(GetParam() % 2 == 0);
  script.session.multi_flow_threshold_bytes = 4096;
  script.session.max_redials = 20;
  script.session.redial_window = std::chrono::hours(1);
  script.session.eager_allowance_bytes = GetParam() % 3 == 0 ? 4096 : 65'536;
  script.kill_chance = 60;
  std::mt19937_64 rng(GetParam());
  for (int i = 0; i < 60; ++i) {
    const std::size_t most = rng() % 4 == 0 ? 120'000 : 3000;
    script.sizes.push_back(rng() % most);
  }
  MsgWorld world(script);
  ASSERT_TRUE(world.run_all()) << world.sender.error.where << "/" << world.receiver.error.where;
  ASSERT_EQ(world.problem(), "");
  EXPECT_GT(world.net.pairs(), 4U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Dying, testing::Range<std::uint64_t>(1, 41));

TEST(MsgSession, ASessionRunsWithoutExtraFlowsThatDoNotOpen) {
  MsgScript script;
  script.session.multi_flow_threshold_bytes = 4096;
  script.sizes.assign(30, 100'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.net.pairs() == 1; }));
  world.net.refuse_dials(2);
  EXPECT_TRUE(world.run_all());
  EXPECT_EQ(world.net.pairs(), 2U);
  EXPECT_EQ(world.problem(), "");
  EXPECT_TRUE(world.close_all());
}

TEST(MsgSession, RedialsAreLimited) {
  MsgScript script;
  script.sizes.assign(40, 100'000);
  script.session.flows = 1;
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 3; }));
  world.net.refuse_dials(100);
  world.net.kill(0, Errc::kTimedOut);
  const TimePoint killed_at = world.now;
  EXPECT_TRUE(world.run_until([&] { return world.receiver.failed != 0; }));
  EXPECT_EQ(world.sender.failed, 1U);
  EXPECT_EQ(world.sender.error.code, Errc::kNoRoute);
  EXPECT_EQ(world.receiver.failed, 1U);
  EXPECT_EQ(world.receiver.error.code, Errc::kTimedOut);
  EXPECT_LT(world.now - killed_at, std::chrono::seconds(41));
  EXPECT_EQ(world.problem(), "");
}

TEST(MsgSession, ARedialWithoutAnswerIsBounded) {
  MsgScript script;
  script.sizes.assign(40, 100'000);
  script.session.flows = 1;
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 3; }));
  world.net.lose_dials(2);
  world.net.kill(0);
  const TimePoint killed_at = world.now;
  EXPECT_TRUE(world.run_all());  // The third attempt's path is not the dead one.
  EXPECT_EQ(world.net.pairs(), 4U);
  EXPECT_LT(world.now - killed_at, std::chrono::seconds(10));

  MsgWorld silent(script);
  ASSERT_TRUE(silent.run_until([&] { return silent.receiver.done >= 3; }));
  silent.net.lose_dials(100);
  silent.net.kill(0);
  EXPECT_FALSE(silent.run_all());
  EXPECT_EQ(silent.sender.error.code, Errc::kTimedOut);
  EXPECT_EQ(silent.sender.failed + silent.receiver.failed, 2U);
}

TEST(MsgSession, TruncationIsReportedToBothEndsWithBothSizes) {
  MsgScript script;
  script.post_chance = 0;
  script.sizes = {100'000};
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.recv_session != nullptr; }));
  world.post_receive(99'999);
  world.run_until([&] { return world.sender.failed != 0 && world.receiver.failed != 0; });
  EXPECT_EQ(world.receiver.error.code, Errc::kTruncated);
  EXPECT_EQ(world.sender.error.code, Errc::kTruncated);
  EXPECT_EQ(describe(world.send_session->failure_detail()),
            "the peer refused: a message of 100000 bytes does not fit the posted buffer of 99999");
}

struct Keys {
  const char* name;
  msg::ClusterKey sender;
  msg::ClusterKey receiver;
  Reason reason;
  bool from_peer;
};
constexpr msg::ClusterKey kKeyA{std::byte{1}};
constexpr msg::ClusterKey kKeyB{std::byte{2}};

class Authentication : public testing::TestWithParam<Keys> {};

TEST_P(Authentication, OnlyEqualKeysConnect) {
  MsgScript script;
  script.sender_key = GetParam().sender;
  script.receiver_key = GetParam().receiver;
  script.session.multi_flow_threshold_bytes = 4096;
  script.sizes.assign(20, 20'000);
  script.kill_chance = 100;  // Resumed flows prove the key again.
  script.session.max_redials = 20;
  MsgWorld world(script);
  const bool done = world.run_all();
  if (GetParam().reason == Reason::kNone) {
    EXPECT_TRUE(done);
    EXPECT_EQ(world.problem(), "");
    return;
  }
  EXPECT_FALSE(done);
  EXPECT_EQ(world.recv_session, nullptr);
  ASSERT_EQ(world.sender.failed, 1U);
  EXPECT_EQ(world.sender.error.code, Errc::kRefused);
  EXPECT_EQ(world.send_session->failure_detail().reason, GetParam().reason);
  EXPECT_EQ(world.send_session->failure_detail().from_peer, GetParam().from_peer);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, Authentication,
    testing::Values(Keys{"equal", kKeyA, kKeyA, Reason::kNone, false},
                    Keys{"differ", kKeyA, kKeyB, Reason::kKeyMismatch, false},
                    Keys{"receiver_only", {}, kKeyB, Reason::kKeyMissing, true},
                    Keys{"sender_only", kKeyA, {}, Reason::kKeyUnexpected, true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ztcp
