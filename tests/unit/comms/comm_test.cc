// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Comms over a link in memory, with their real threads. No test waits for time to pass: every loop
// polls as NCCL does, and ends when the library answers.
#include "transport/comms/comm.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/support/transfers.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::comms {
namespace {

using namespace test;
using ustack::HostOptions;
using ustack::TwoHosts;

class Transfers : public testing::TestWithParam<config::PollerMode> {
 protected:
  HostOptions options() const { return {.mode = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Modes, Transfers,
                         testing::Values(config::PollerMode::kShared,
                                         config::PollerMode::kDedicated),
                         ustack::mode_name);

TEST_P(Transfers, EveryByteArrivesOnceAndInOrder) {
  TwoHosts hosts(options());
  Pair pair = connect(hosts[0], hosts[1]);
  expect_carries_every_size(pair);
}

// Two proxy threads of one process use one NIC at once.
TEST_P(Transfers, TwoProgressThreadsShareANic) {
  TwoHosts hosts(options());
  std::array<Pair, 2> pairs = {connect(hosts[0], hosts[1]), connect(hosts[0], hosts[1])};
  std::vector<std::thread> threads;
  for (std::size_t which = 0; which < pairs.size(); ++which) {
    threads.emplace_back([&, which] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const Bytes bytes = pattern(5000, i * 2 + which);
        Request* request = post_until_taken(*pairs[which].sender, bytes, nullptr);
        ASSERT_NE(request, nullptr);
        ASSERT_TRUE(finish(*request));
      }
    });
    threads.emplace_back([&, which] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        Bytes bytes(5000);
        const auto request = post_recv(*pairs[which].receiver, bytes);
        ASSERT_TRUE(request && *request != nullptr);
        ASSERT_TRUE(finish(**request));
        ASSERT_EQ(bytes, pattern(5000, i * 2 + which));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Transfers, NicConnectsToItself) {
  TwoHosts hosts(options());
  Pair pair = connect(hosts[0], hosts[0]);
  expect_carries(pair, pattern(400'000, 3));
}

TEST_P(Transfers, FiftyConnectionsInARowTransfer) {
  TwoHosts hosts(options());
  for (std::uint64_t i = 0; i < 50; ++i) {
    Pair pair = connect(hosts[0], hosts[1]);
    expect_carries(pair, pattern(100, i));
  }
}

// Further flows are dialled with the first large message. They must not use up the table entries of
// later connections.
TEST_P(Transfers, FurtherFlowsLeaveRoomForFirstFlowsOfLaterConnections) {
  HostOptions small_table = options();
  small_table.max_connections = 32;
  TwoHosts hosts(small_table);
  const Bytes sent = pattern(1U << 20U, 1);
  std::vector<Pair> pairs;
  for (int i = 0; i < 20; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    ASSERT_TRUE(pairs.back().sender && pairs.back().receiver) << i;
    for (int again = 0; again < 3; ++again) expect_carries(pairs.back(), sent);
  }
}

TEST(Close, WithReceivesInFlightTouchesNoBufferAfterwards) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  expect_closing_leaves_the_buffer(pair);
}

TEST_P(Transfers, AbortIsReportedToThePeerAtOnce) {
  for (const bool is_sender : {true, false}) {
    TwoHosts hosts(options());
    Pair pair = connect(hosts[0], hosts[1]);
    expect_an_abort_is_heard(pair, is_sender);
  }
}

TEST(Close, AfterTheLastMessageLosesNothing) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  const Bytes sent = pattern(100000, 9);
  Request* sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  ASSERT_TRUE(finish(*sending));
  pair.sender.reset();
  Bytes received(sent.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  const auto size = finish(**receiving);
  ASSERT_TRUE(size);
  EXPECT_EQ(received, sent);
}

TEST(Memory, DeregisteringMemoryInFlightEndsTheConnection) {
  TwoHosts hosts({.drain_timeout_ms = 20});
  Pair pair = connect(hosts[0], hosts[1]);
  expect_deregistering_ends_it(pair);
}

// How often `line` was logged for information.
std::ptrdiff_t count_of(const test::LogCapture& log, const std::string& line) {
  const auto infos = log.infos();
  return std::ranges::count(infos, line);
}

// NCCL aborts: it takes back the memory of every connection, and closes it.
TEST(EndLog, AbortOfManyConnectionsIsLoggedOnceWithTheirNumberAndTheFirstCause) {
  TwoHosts hosts({.drain_timeout_ms = 20});
  const test::LogCapture log;
  std::vector<Pair> pairs;
  Bytes large(1U << 20U);  // Larger than the eager allowance, and no receive is posted for it.
  for (int i = 0; i < 20; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    const auto key = pairs.back().sender->register_memory({large.data(), large.size()});
    ASSERT_TRUE(key);
    ASSERT_NE(post_until_taken(*pairs.back().sender, large, *key), nullptr);
    EXPECT_TRUE(pairs.back().sender->deregister_memory(*key));
  }
  const std::string first =
      "the job was aborted with messages under way to 10.1.0.2:7471: NCCL took their memory back";
  EXPECT_EQ(count_of(log, "mem0: " + first), 1);
  for (Pair& pair : pairs) pair.sender.reset();
  EXPECT_EQ(count_of(log,
                     "mem0: 19 more connections ended after the first: 0 failed, 19 closed with "
                     "messages in flight, as an abort does; the first: " +
                         first),
            1);
  EXPECT_TRUE(log.warnings().empty()) << "an abort is no fault: " << log.warned();
}

TEST(EndLog, FailuresOfOneCauseAreLoggedOncePerPeer) {
  TwoHosts hosts;
  const test::LogCapture log;
  std::vector<Pair> pairs;
  Bytes small(100);
  const Bytes large(101);
  for (int i = 0; i < 10; ++i) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    const auto receiving = post_recv(*pairs.back().receiver, small);
    ASSERT_TRUE(receiving && *receiving != nullptr);
    ASSERT_NE(post_until_taken(*pairs.back().sender, large, nullptr), nullptr);
    EXPECT_FALSE(finish(**receiving));
  }
  ASSERT_EQ(log.warnings().size(), 1U);
  for (Pair& pair : pairs) pair.receiver.reset();
  ASSERT_EQ(log.warnings().size(), 2U);
  EXPECT_EQ(log.warnings()[1].find("mem1: 9 more connections ended after the first: 9 failed, 0 "),
            0U)
      << log.warnings()[1];
}

// deregister_memory() never waits for a receive, so sends to the same peer keep their full timeout.
TEST(Memory, DeregisteringAPostedReceiveLeavesTheTimeoutForSendsUntouched) {
  TwoHosts hosts({.drain_timeout_ms = 60000});
  Pair there = connect(hosts[0], hosts[1]);
  Pair back = connect(hosts[1], hosts[0]);
  Bytes into(1U << 20U);
  const auto into_key = back.receiver->register_memory({into.data(), into.size()});
  ASSERT_TRUE(into_key);
  const auto receiving = post_recv(*back.receiver, into, *into_key);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  EXPECT_TRUE(back.receiver->deregister_memory(*into_key));

  Bytes from(1U << 20U);
  const auto from_key = there.sender->register_memory({from.data(), from.size()});
  ASSERT_TRUE(from_key);
  Request* sending = post_until_taken(*there.sender, from, *from_key);
  ASSERT_NE(sending, nullptr);
  Bytes received(from.size());
  std::thread receiver([&] {
    const auto request = post_recv(*there.receiver, received);
    ASSERT_TRUE(request && *request != nullptr);
    EXPECT_TRUE(finish(**request));
  });
  EXPECT_TRUE(there.sender->deregister_memory(*from_key));
  EXPECT_TRUE(finish(*sending)) << "the connection was ended although its peer lives";
  receiver.join();
}

TEST(Memory, DeregisteringIdleMemoryLeavesTheConnectionAlone) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes idle(4096);
  const auto key = pair.sender->register_memory({idle.data(), idle.size()});
  ASSERT_TRUE(key);
  Bytes other(1U << 20U);
  Request* request = post_until_taken(*pair.sender, other, nullptr);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(pair.sender->deregister_memory(*key));
  Bytes received(other.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  EXPECT_TRUE(finish(**receiving));
  EXPECT_TRUE(finish(*request));
  EXPECT_FALSE(pair.sender->deregister_memory(*key)) << "the key was removed before";
}

}  // namespace
}  // namespace ztcp::comms
