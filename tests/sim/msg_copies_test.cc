// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sessions with workers that copy the payload: the promises of MsgWorld hold at any time a worker
// comes to its jobs, and a closed connection no longer writes to its buffers.
#include <gtest/gtest.h>

#include "tests/support/msg_world.h"

namespace ztcp {
namespace {

using testing_support::MsgScript;
using testing_support::MsgWorld;

MsgScript with_workers(std::uint64_t seed, std::size_t workers = 3) {
  MsgScript script;
  script.streams.seed = seed;
  script.session.multi_flow_threshold_bytes = 4096;
  script.copies.workers = workers;
  return script;
}

class Copies : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Copies, testing::Range<std::uint64_t>(1, 13));

TEST_P(Copies, EveryMessageArrivesOnceAndWhole) {
  MsgScript script = with_workers(GetParam(), 1 + GetParam() % 4);
  script.streams.loan_refused_chance = GetParam() % 3 == 0 ? 10 : 0;
  script.session.eager_allowance_bytes = GetParam() % 2 == 0 ? 4096 : 65'536;
  script.post_chance = GetParam() % 2 == 0 ? 4 : 40;
  std::mt19937_64 rng(GetParam());
  for (int i = 0; i < 80; ++i) {
    const std::size_t most = rng() % 3 == 0 ? 120'000 : 3000;
    script.sizes.push_back(rng() % most);
  }
  MsgWorld world(script);
  ASSERT_TRUE(world.run_all()) << world.problem();
  EXPECT_EQ(world.problem(), "");
  EXPECT_GT(world.workers.done, 50U);
  EXPECT_TRUE(world.close_all());
  EXPECT_EQ(world.net.loans(), 0U);
}

// Flows die all the time; retransmitted bytes are written again, and no worker may be copying then.
TEST_P(Copies, FlowsThatDieLoseNothing) {
  MsgScript script = with_workers(GetParam());
  script.session.ack_is_delivery = GetParam() % 2 == 0;
  script.session.max_redials = 20;
  script.session.redial_window = std::chrono::hours(1);
  script.kill_chance = 60;
  std::mt19937_64 rng(GetParam());
  for (int i = 0; i < 90; ++i) {
    const std::size_t most = rng() % 4 == 0 ? 120'000 : 9000;
    script.sizes.push_back(rng() % most);
  }
  MsgWorld world(script);
  ASSERT_TRUE(world.run_all()) << world.sender.error.where << "/" << world.receiver.error.where
                               << world.problem();
  EXPECT_EQ(world.problem(), "");
  EXPECT_GT(world.workers.done, 200U);
}

TEST_P(Copies, SmallPiecesAreNotGivenToWorkers) {
  MsgScript script = with_workers(GetParam());
  script.copies.least_piece_bytes = 3000;
  script.streams.max_piece_bytes = 2999;
  script.sizes.assign(10, 50'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_all()) << world.problem();
  EXPECT_EQ(world.workers.done, 0U);
}

// A send is done when its bytes are acknowledged, so the bye may arrive before they are copied.
TEST_P(Copies, AByeIsHandledAfterTheCopies) {
  MsgScript script = with_workers(GetParam(), 2);
  script.flush_chance = 0;  // No memory is taken back while other events can happen.
  script.sizes.assign(5, 50'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.sender.done == 5; }));
  world.send_session->close();
  ASSERT_TRUE(world.run_until([&] { return world.sender.closed != 0 && world.all_done(); }))
      << world.receiver.error.where << world.problem();
  EXPECT_EQ(world.receiver.failed, 0U);
  EXPECT_EQ(world.problem(), "");
}

// Runs until workers have pieces of messages.
void run_until_copying(MsgWorld& world) {
  ASSERT_TRUE(world.run_until([&] {
    return world.receiver.done >= 2 && world.recv_session->has_copies_out();
  })) << world.problem();
}

enum class End { kAbort, kClose, kLeave, kDestroy };
class Ends : public testing::TestWithParam<End> {};
INSTANTIATE_TEST_SUITE_P(Ways, Ends,
                         testing::Values(End::kAbort, End::kClose, End::kLeave, End::kDestroy));

TEST_P(Ends, BuffersAreNotWrittenAfterTheEnd) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    MsgScript script = with_workers(seed);
    script.sizes.assign(40, 60'000);
    MsgWorld world(script);
    run_until_copying(world);
    const std::size_t done = world.receiver.done;
    switch (GetParam()) {
      case End::kAbort:
        world.recv_session->abort();
        break;
      case End::kClose:
        world.recv_session->close();
        break;
      case End::kLeave:
        world.recv_session->leave(world.now);
        break;
      case End::kDestroy:
        world.recv_session.reset();
        break;
    }
    EXPECT_GT(world.workers.waits, 0U);
    EXPECT_EQ(world.receiver.done, done) << "no message is reported";
    world.spoil_posted_buffers();
    for (int i = 0; i < 1000; ++i) {
      world.now += std::chrono::milliseconds(1);
      world.copies.publish();
      world.workers.turn(world.now);
      world.copies.collect(world.now);
    }
    EXPECT_TRUE(world.are_posted_buffers_spoilt());
    EXPECT_TRUE(world.copies.is_idle());
    EXPECT_EQ(world.net.loans(), 0U) << "all frames are back";
  }
}

// Messages that have arrived whole are completed first, as without workers; the others are lost
// with the session, and once its failure is reported their memory is not written any more.
TEST(CopiesFail, ArrivedMessagesAreCompletedBeforeTheFailure) {
  std::size_t rescued = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MsgScript script = with_workers(seed);
    script.sizes.assign(40, 30'000);
    MsgWorld world(script);
    run_until_copying(world);
    const std::size_t done = world.receiver.done;
    world.recv_session->on_sender_left(world.now, msg::Reason::kProcessEnded);
    EXPECT_EQ(world.receiver.failed, 1U);
    EXPECT_FALSE(world.recv_session->has_copies_out());
    EXPECT_EQ(world.problem(), "");
    rescued += world.receiver.done - done;
    world.spoil_posted_buffers();
    for (int i = 0; i < 1000; ++i) {
      world.now += std::chrono::milliseconds(1);
      world.workers.turn(world.now);
      world.copies.collect(world.now);
    }
    EXPECT_TRUE(world.are_posted_buffers_spoilt());
  }
  EXPECT_GT(rescued, 0U);
}

// At the end of a process a worker may never run again: leave() must not wait for it.
TEST(CopiesFail, LeavingDoesNotWaitForAStuckWorker) {
  MsgScript script = with_workers(3);
  script.sizes.assign(40, 60'000);
  MsgWorld world(script);
  run_until_copying(world);
  world.workers.is_stuck = true;
  world.recv_session->leave(world.now);
  EXPECT_FALSE(world.recv_session->has_copies_out());
}

}  // namespace
}  // namespace ztcp
