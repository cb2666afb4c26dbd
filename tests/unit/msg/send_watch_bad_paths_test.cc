// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Flows on paths that lose packets, or carry only small ones.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/send_watch_fixture.h"

namespace ztcp::msg {
namespace {

using namespace std::chrono_literals;

// Some of four flows that carry bulk have timeouts at a check, and all go on.
TEST_F(SendWatch, FlowWithTimeoutsBesideGoodSiblings_LeavesItsPath) {
  spread();
  post(1U << 20);
  for (int i = 0; i < 5; ++i) check({0, 1, 2});
  check({1});
  check({1});
  EXPECT_EQ(dialled.size(), 4U);
  check({1});
  ASSERT_EQ(dialled.size(), 5U);
  EXPECT_FALSE(dialled[1].stream.aborted) << "the new stream is not open yet";
  dialled[4].events->on_open(now, dialled[4].stream);
  pass(1ms);
  EXPECT_TRUE(dialled[1].stream.aborted);
  ASSERT_NE(dialled[4].stream.handed_to, nullptr);
  dialled[4].events = dialled[4].stream.handed_to;
  preamble(dialled[4]);
  say(dialled[4], kLimits);
  say(dialled[4], Ready{});
  ASSERT_EQ(redialled.size(), 1U);
  EXPECT_EQ(redialled[0].timeouts, 3U);
  EXPECT_EQ(redialled[0].lost_port, 40002);
  EXPECT_EQ(redialled[0].port, 40005);
  for (int i = 0; i < 6; ++i) check({2});
  EXPECT_EQ(dialled.size(), 5U) << "a pause";
  for (int i = 0; i < 6 && dialled.size() == 5; ++i) check({2});
  EXPECT_EQ(dialled.size(), 6U);
  EXPECT_TRUE(failures.empty());
}

// Its move is not lost: it comes as soon as the comparison has ended.
TEST_F(SendWatch, FlowOnABadPath_StaysWhileAnotherIsCompared) {
  spread();
  post(1U << 20);
  for (int i = 0; i < 5; ++i) check({0, 1, 2});
  check({1});
  dialled[3].stream.stalled = {.timeouts = 3};
  check({1});
  check({1});
  EXPECT_GT(dialled[3].stream.peer_asks, 0);
  EXPECT_EQ(dialled.size(), 4U);
  dialled[3].stream.stalled = {};
  check({1});
  EXPECT_EQ(dialled.size(), 5U);
}

TEST_F(SendWatch, FlowOnABadPath_StaysIfNoOtherStreamOpensSoon) {
  spread();
  post(1U << 20);
  for (int i = 0; i < 9; ++i) {
    for (std::size_t flow = 0; flow < 4; ++flow) {
      dialled[flow].stream.vitals.delivered_bytes += 1'000'000;
      ack(dialled[flow], 70'000);
    }
    dialled[2].stream.vitals.marked_bytes += 700'000;
    pass(100ms);
  }
  ASSERT_EQ(dialled.size(), 5U);
  EXPECT_FALSE(dialled[2].stream.aborted);
  EXPECT_TRUE(dialled[4].stream.aborted);
}

// A path that carries handshakes but nothing larger, however long TCP waits for it.
TEST_F(SendWatch, PathThatDeliversNoPayload_IsTriedWithSmallerSegmentsAndGivenUp) {
  for (const Duration life : {1s, 6s, 8s, 30s}) {
    SCOPED_TRACE(std::chrono::duration_cast<std::chrono::seconds>(life).count());
    session.reset();
    dialled.clear();
    failures.clear();
    segment_limits.clear();
    over_kernel_sockets();
    accept(0, Credit{3, 0, 0});
    post(100'000);
    for (int lives = 0; failures.empty() && lives < 100; ++lives) {
      dialled.back().events->on_acked(now, 200'000);  // The kernel has copied it.
      now += life;
      dialled.back().stream.vitals.delivered_bytes = kHelloBytes;
      dialled.back().events->on_failed(now, Error{Errc::kTimedOut, 0, "user timeout"});
      if (!failures.empty()) break;
      wait_for_dial(dialled.size() + 1);
      if (failures.empty()) accept(dialled.size() - 1, Credit{3, 0, 0});
    }
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].code, Errc::kPathMtu);
    EXPECT_EQ(dialled.size(), settings.max_redials + 1U);
    EXPECT_EQ(segment_limits, (std::vector<std::uint32_t>{1360, 1024, 1024}));
  }
}

// Only a path on which the next handshake succeeds at once needs small segments.
TEST_F(SendWatch, OutageRightAfterAHandshake_IsNotTakenForAnMtu) {
  over_kernel_sockets();
  accept(0, Credit{3, 0, 0});
  post(100'000);
  now += 3s;
  dialled[0].events->on_failed(now, Error{Errc::kTimedOut, 0, "user timeout"});
  for (std::size_t dial = 1; dial < 3; ++dial) {
    wait_for_dial(dial + 1);
    dialled[dial].events->on_failed(now, Error{Errc::kNoRoute, 113, "connect"});
  }
  wait_for_dial(4);
  accept(3, Credit{3, 0, 0});
  EXPECT_EQ(segment_limits, std::vector<std::uint32_t>{1360});
  EXPECT_EQ(small_flows, 0);
  EXPECT_TRUE(failures.empty());
}

// A received message, or many bytes acknowledged by the peer's TCP, are progress.
TEST_F(SendWatch, FlowsThatDeliverSomethingEach_AreDialledForEver) {
  for (const bool by_message : {false, true}) {
    session.reset();
    dialled.clear();
    over_kernel_sockets();
    std::uint64_t received = 0;
    accept(0, Credit{1000, 0, 0});
    for (int lives = 1; lives <= 20; ++lives) {
      post(100'000);
      dialled.back().events->on_acked(now, 200'000);  // The kernel has copied it.
      if (by_message)
        say(dialled.back(), Credit{1000, 0, ++received});
      else
        dialled.back().stream.vitals.delivered_bytes = 90'000;
      now += 1s;
      dialled.back().events->on_failed(now, Error{Errc::kTimedOut, 0, "user timeout"});
      ASSERT_TRUE(failures.empty()) << lives;
      wait_for_dial(dialled.size() + 1);
      accept(dialled.size() - 1, Credit{1000, 0, received});
    }
    EXPECT_TRUE(segment_limits.empty());
  }
}

}  // namespace
}  // namespace ztcp::msg
