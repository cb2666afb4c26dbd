// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How sessions end: both halves of msg/ against each other, and neither waits for ever.
#include <gtest/gtest.h>

#include "tests/support/msg_world.h"
#include "transport/msg/reason.h"

namespace ztcp {
namespace {

using msg::Reason;
using testing_support::MsgScript;
using testing_support::MsgWorld;

TEST(MsgSession, ARemovedListenerRefusesWithUnknownCookie) {
  MsgScript script;
  script.sizes = {1};
  MsgWorld world(script);
  world.acceptor.remove_listener(MsgWorld::kCookie);
  world.run_until([&] { return world.sender.failed != 0; });
  EXPECT_EQ(world.sender.error.code, Errc::kRefused);
  EXPECT_EQ(world.send_session->failure_detail().reason, Reason::kUnknownCookie);
}

TEST(MsgSession, AConnectWithoutListenerFails) {
  MsgScript script;
  script.sizes = {1};
  MsgWorld world(script);
  world.net.refuse_dials(1);
  world.run_until([&] { return world.sender.failed != 0; });
  EXPECT_EQ(world.sender.error.code, Errc::kNoRoute);
  EXPECT_EQ(world.net.pairs(), 0U);  // Not dialled again: nothing was lost.
}

TEST(MsgSession, ClosingWaitsForMessagesAndEndsWithoutError) {
  MsgScript script;
  script.session.multi_flow_threshold_bytes = 4096;
  script.sizes.assign(40, 30'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.sender.done + 5 >= 40; }));
  ASSERT_TRUE(world.run_until([&] { return !world.has_unposted_sends(); }));
  world.send_session->close();
  EXPECT_TRUE(world.run_until([&] { return world.sender.closed != 0 && world.all_done(); }));
  EXPECT_TRUE(world.close_all());
  EXPECT_EQ(world.sender.failed + world.receiver.failed, 0U);
  EXPECT_EQ(world.problem(), "");
}

TEST(MsgSession, TheReceiverMayCloseFirst) {
  MsgScript script;
  script.session.multi_flow_threshold_bytes = 4096;
  script.sizes.assign(40, 30'000);
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    script.streams.seed = seed;
    MsgWorld world(script);
    // At once: our last acknowledgements may still be in flight.
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done == 40; }));
    world.recv_session->close();
    ASSERT_TRUE(world.run_until([&] { return world.receiver.closed != 0 && world.all_done(); }))
        << seed << world.sender.error.where;
    world.send_session->close();
    ASSERT_TRUE(world.run_until([&] { return world.sender.closed != 0; }));
    EXPECT_EQ(world.sender.failed + world.receiver.failed, 0U);
    EXPECT_EQ(world.problem(), "");
  }
}

// All messages were received, the acknowledgements died with the flows, and the receiver has closed
// and is gone when the sender redials: delivered messages are done.
TEST(MsgSession, DeliveredMessagesAreDoneThoughTheReceiverHasClosed) {
  int in_doubt = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    MsgScript script;
    script.streams.seed = seed;
    script.set_ack_is_delivery(seed % 2 == 0);
    script.session.flows = seed % 3 == 0 ? 4 : 1;
    script.session.multi_flow_threshold_bytes = 4096;
    script.sizes.assign(10, 30'000);
    MsgWorld world(script);
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done == 10; }));
    if (world.sender.done < 10) ++in_doubt;
    for (std::size_t pair = 0; pair < world.net.pairs(); ++pair)
      if (world.net.is_alive(pair)) world.net.kill(pair);
    world.recv_session->close();
    EXPECT_EQ(world.receiver.closed, 1U);
    world.recv_session.reset();
    EXPECT_TRUE(world.run_until([&] { return world.all_done(); }))
        << seed << ": " << describe(world.send_session->failure_detail());
    world.send_session->close();
    EXPECT_TRUE(world.run_until([&] { return world.sender.closed != 0; })) << seed;
    EXPECT_EQ(world.sender.failed, 0U);
    EXPECT_EQ(world.problem(), "");
  }
  EXPECT_GT(in_doubt, 30);
}

TEST(MsgSession, UndeliveredMessagesFailWhenTheReceiverHasClosed) {
  MsgScript script;
  script.session.flows = 1;
  script.sizes.assign(10, 30'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 5; }));
  world.net.kill(0);
  world.recv_session->close();
  world.recv_session.reset();
  world.run_until([&] { return world.sender.failed != 0; });
  EXPECT_EQ(world.sender.error.code, Errc::kPeerClosed);
  EXPECT_EQ(world.send_session->failure_detail().reason, Reason::kClosed);
  EXPECT_LT(world.sender.done, 10U);
  EXPECT_EQ(world.problem(), "");
}

TEST(MsgSession, AReceiverThatClosesTooEarlyFailsTheSender) {
  MsgScript script;
  script.sizes.assign(40, 30'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 5; }));
  world.recv_session->close();
  world.run_until([&] { return world.sender.failed != 0; });
  EXPECT_EQ(world.sender.error.code, Errc::kPeerClosed);
  EXPECT_EQ(world.send_session->failure_detail().reason, Reason::kClosed);
  EXPECT_EQ(world.problem(), "");
}

// A sender's abort reaches the peer at once in every state of its flows: the seeds leave a flow
// between two records, inside a chunk, or still being dialled.
class Abort : public testing::TestWithParam<bool> {
 protected:
  MsgScript script(std::uint64_t seed) const {
    MsgScript script;
    script.streams.seed = seed;
    script.set_ack_is_delivery(GetParam());
    script.session.flows = seed % 3 == 0 ? 4 : 1;
    script.session.multi_flow_threshold_bytes = 4096;
    script.sizes.assign(40, seed % 5 == 0 ? 300 : 30'000);
    // With late buffers nothing is in flight, and messages wait for credit.
    script.post_chance = seed % 4 == 0 ? 40 : 4;
    return script;
  }
};

INSTANTIATE_TEST_SUITE_P(Streams, Abort, testing::Bool(), [](const auto& row) {
  return row.param ? "AcknowledgeDelivery" : "AreLikeTheKernels";
});

TEST_P(Abort, SenderAbortEndsBothAtOnce) {
  int by_hello = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    MsgScript script = this->script(seed);
    MsgWorld world(script);
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done > seed % 20; }));
    by_hello += world.send_session->give_up(world.now) ? 1 : 0;
    world.stop_sending();
    const TimePoint aborted_at = world.now;
    world.run_until([&] { return world.receiver.failed != 0; });
    if (world.receiver.done == 40) continue;  // All of them had come and waited for buffers.
    ASSERT_EQ(world.receiver.failed, 1U) << seed;
    EXPECT_EQ(world.receiver.error.code, Errc::kPeerClosed);
    EXPECT_EQ(world.recv_session->failure_detail().reason, Reason::kAborted) << seed;
    EXPECT_LE(world.now - aborted_at, std::chrono::seconds(1)) << seed;
    EXPECT_EQ(world.sender.failed, 0U);
    EXPECT_EQ(world.problem(), "") << seed;
    world.run_until([] { return false; });
    EXPECT_FALSE(world.send_session->is_finishing());
    EXPECT_LE(world.sender.closed, 1U);
  }
  EXPECT_GT(by_hello, 5);
  EXPECT_LT(by_hello, 100);
}

TEST_P(Abort, ReceiverAbortEndsBothAtOnce) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    MsgScript script = this->script(seed);
    MsgWorld world(script);
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done > seed % 20; }));
    world.recv_session->give_up();
    world.stop_receiving();
    const TimePoint aborted_at = world.now;
    world.run_until([&] { return world.sender.failed != 0; });
    ASSERT_EQ(world.sender.failed, 1U) << seed;
    EXPECT_EQ(world.sender.error.code, Errc::kPeerClosed);
    EXPECT_EQ(world.send_session->failure_detail().reason, Reason::kAborted) << seed;
    EXPECT_LE(world.now - aborted_at, std::chrono::seconds(1)) << seed;
    EXPECT_EQ(world.receiver.failed + world.receiver.closed, 0U);
    EXPECT_EQ(world.problem(), "") << seed;
  }
}

// The notice may be lost with its flows, or find no peer: then the silence timeout ends the
// session.
TEST_P(Abort, AbortWithLostNoticeEndsBothInBoundedTime) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    MsgScript script = this->script(seed);
    MsgWorld world(script);
    ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 5; }));
    const bool goes_on = world.send_session->give_up(world.now);
    world.stop_sending();
    for (std::size_t pair = 0; pair < world.net.pairs(); ++pair)
      if (world.net.is_alive(pair)) world.net.kill(pair);
    world.net.lose_dials(1000);
    const TimePoint aborted_at = world.now;
    world.run_until([&] { return world.sender.closed != 0; });
    EXPECT_EQ(world.sender.closed, goes_on ? 1U : 0U);
    if (goes_on) {
      EXPECT_LE(world.now - aborted_at,
                script.session.redial_window + script.session.redial_attempt);
    }
    world.run_until([&] { return world.receiver.failed != 0; });
    EXPECT_EQ(world.receiver.failed, 1U) << seed;
    EXPECT_LE(world.now - aborted_at, std::chrono::seconds(17)) << seed;
    EXPECT_EQ(world.sender.failed, 0U);
  }
}

// Flows may be reset because they are dialled again.
TEST_P(Abort, AResetAloneIsNotTakenForAnAbort) {
  MsgScript script = this->script(1);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done >= 5; }));
  world.send_session->abort();
  world.stop_sending();
  const TimePoint aborted_at = world.now;
  world.run_until([&] { return world.receiver.failed != 0; });
  EXPECT_EQ(world.receiver.error.code, Errc::kPeerClosed);
  EXPECT_GE(world.now - aborted_at, script.session.resume_wait());
  EXPECT_LE(world.now - aborted_at, std::chrono::seconds(17));
  EXPECT_EQ(world.sender.failed + world.sender.closed, 0U);
}

TEST(MsgSession, AnUnusedSessionCloses) {
  MsgScript script;
  MsgWorld world(script);
  EXPECT_TRUE(world.close_all());
  EXPECT_EQ(world.sender.failed + world.receiver.failed, 0U);
}

}  // namespace
}  // namespace ztcp
