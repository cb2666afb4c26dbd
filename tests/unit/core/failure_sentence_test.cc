// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/failure_sentence.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

FailureSentence timed_out() {
  FailureSentence failure;
  failure.remote = {Ipv4Address{0x0a010002}, 7471};
  failure.error = {Errc::kTimedOut, 0, "user timeout"};
  return failure;
}

TEST(FailureSentence, HasPeerErrorAndCall) {
  EXPECT_EQ(to_string(timed_out()),
            "sending to 10.1.0.2:7471 failed: the peer stopped answering (user timeout); 0 "
            "messages (0 bytes) done, 0 in flight");
}

TEST(FailureSentence, NamesTheDeviceBehindThePeer) {
  FailureSentence failure = timed_out();
  failure.direction = Direction::kReceive;
  failure.over = "mlx5_0 port 1";
  EXPECT_TRUE(
      to_string(failure).starts_with("receiving from 10.1.0.2:7471 over mlx5_0 port 1 "
                                     "failed: the peer stopped answering (user timeout);"))
      << to_string(failure);
}

TEST(FailureSentence, WritesErrnoInWordsBehindTheCall) {
  FailureSentence failure = timed_out();
  failure.error = {Errc::kNoRoute, ENETUNREACH, "connect"};
  EXPECT_NE(to_string(failure).find(
                "failed: no route to the peer (connect: Network is unreachable); 0 messages"),
            std::string::npos)
      << to_string(failure);
}

TEST(FailureSentence, LeavesOutACallThatRepeatsTheError) {
  FailureSentence failure = timed_out();
  failure.error = {Errc::kRefused, 0, "the peer refused"};
  EXPECT_NE(to_string(failure).find("failed: the peer refused; 0 messages"), std::string::npos)
      << to_string(failure);
}

TEST(FailureSentence, ReasonReplacesTheErrorAndTheDetailFollows) {
  FailureSentence failure = timed_out();
  failure.reason = "the peer aborted the connection";
  failure.detail = "process 7 of host a";
  EXPECT_NE(to_string(failure).find(
                "failed: the peer aborted the connection: process 7 of host a; 0 messages"),
            std::string::npos)
      << to_string(failure);
}

TEST(FailureSentence, ClausesFollowTheMessagesAndEmptyOnesAreLeftOut) {
  FailureSentence failure = timed_out();
  failure.messages_done = 5;
  failure.bytes_done = 1000;
  failure.in_flight = 2;
  failure.more = {"", "round trip 85 us", "", "raise ack_timeout"};
  EXPECT_TRUE(
      to_string(failure).ends_with("; 5 messages (1000 bytes) done, 2 in flight; round "
                                   "trip 85 us; raise ack_timeout"))
      << to_string(failure);
}

}  // namespace
}  // namespace ztcp
