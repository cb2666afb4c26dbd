// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How sessions end: both halves of msg/ against each other, and nobody left waiting.
#include <gtest/gtest.h>

#include "tests/support/msg_world.h"
#include "transport/msg/reason.h"

namespace ztcp {
namespace {

using msg::Reason;
using testing_support::MsgScript;
using testing_support::MsgWorld;

TEST(MsgSession, AListenerThatIsGoneRefusesByName) {
  MsgScript script;
  script.sizes = {1};
  MsgWorld world(script);
  world.acceptor.remove_listener(MsgWorld::kCookie);
  world.run_until([&] { return world.sender.failed != 0; });
  EXPECT_EQ(world.sender.error.code, Errc::kRefused);
  EXPECT_EQ(world.send_session->failure_detail().reason, Reason::kUnknownCookie);
}

TEST(MsgSession, NobodyListening) {
  MsgScript script;
  script.sizes = {1};
  MsgWorld world(script);
  world.net.refuse_dials(1);
  world.run_until([&] { return world.sender.failed != 0; });
  EXPECT_EQ(world.sender.error.code, Errc::kNoRoute);
  EXPECT_EQ(world.net.pairs(), 0U);  // Not tried again: nothing was lost.
}

TEST(MsgSession, ClosingWaitsForMessagesAndEndsInPeace) {
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
    // At once: our last acknowledgements may still be on their way.
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

// Everything was received, the acknowledgements died with the flows, and the receiver closed and is
// gone when the sender comes back: what was delivered is done.
TEST(MsgSession, WhatWasDeliveredIsDoneThoughTheReceiverClosedMeanwhile) {
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

TEST(MsgSession, WhatWasNotDeliveredFailsByNameThoughTheReceiverIsGone) {
  MsgScript script;
  script.session.flows = 1;
  script.sizes.assign(10, 30'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done == 5; }));
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
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done == 5; }));
  world.recv_session->close();
  world.run_until([&] { return world.sender.failed != 0; });
  EXPECT_EQ(world.sender.error.code, Errc::kPeerClosed);
  EXPECT_EQ(world.send_session->failure_detail().reason, Reason::kClosed);
  EXPECT_EQ(world.problem(), "");
}

TEST(MsgSession, AbortEndsBothInBoundedTime) {
  MsgScript script;
  script.sizes.assign(40, 30'000);
  MsgWorld world(script);
  ASSERT_TRUE(world.run_until([&] { return world.receiver.done == 5; }));
  world.send_session->abort();
  const TimePoint aborted_at = world.now;
  world.run_until([&] { return world.receiver.failed != 0; });
  EXPECT_EQ(world.receiver.error.code, Errc::kPeerClosed);
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
