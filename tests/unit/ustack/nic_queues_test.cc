// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC with several queues: connections spread over them, and events of the NIC reach all queues.
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/ustack/nic.h"

namespace ztcp::ustack {
namespace {

using namespace test;

using testing::HasSubstr;

class Queues : public testing::TestWithParam<config::PollerMode> {
 protected:
  HostOptions options() const { return {.mode = GetParam(), .queues = 3}; }
};
INSTANTIATE_TEST_SUITE_P(Modes, Queues,
                         testing::Values(config::PollerMode::kShared,
                                         config::PollerMode::kDedicated),
                         mode_name);

TEST_P(Queues, NewConnectionGoesToTheQueueWithTheFewest) {
  TwoHosts hosts(options());
  std::vector<Pair> pairs;
  for (const char* lane : {" lane 0", " lane 1", " lane 2", " lane 0"}) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    EXPECT_EQ(lane_of(*pairs.back().sender), lane);
    EXPECT_EQ(lane_of(*pairs.back().receiver), lane)
        << "the peer's queue of the same number receives";
  }
  // The peer spreads the connections that it dials, and starts at another queue.
  for (const char* lane : {" lane 1", " lane 2", " lane 0", " lane 1"}) {
    pairs.push_back(connect(hosts[1], hosts[0]));
    EXPECT_EQ(lane_of(*pairs.back().sender), lane);
  }
  pairs.erase(pairs.begin() + 1);
  pairs.push_back(connect(hosts[0], hosts[1]));
  EXPECT_EQ(lane_of(*pairs.back().sender), " lane 1") << "the lane of the closed connection";
}

// Peers choose the queue that they dial, and may fill one.
TEST_P(Queues, ConnectSkipsAFullQueue) {
  HostOptions few = options();
  few.max_connections = 2;
  TwoHosts hosts(few);
  std::vector<Pair> pairs;
  for (int i = 0; i < 6; ++i) pairs.push_back(connect(hosts[1], hosts[0]));
  // Keeps the connections on the first queue only.
  std::erase_if(pairs, [](const Pair& pair) { return lane_of(*pair.sender) != " lane 0"; });
  ASSERT_EQ(pairs.size(), 2U);
  for (const char* lane : {" lane 1", " lane 2"}) {
    pairs.push_back(connect(hosts[0], hosts[1]));
    EXPECT_EQ(lane_of(*pairs.back().sender), lane);
  }
}

TEST_P(Queues, EveryByteOfEveryQueueArrives) {
  TwoHosts hosts(options());
  std::vector<Pair> pairs;
  for (int i = 0; i < 6; ++i)
    pairs.push_back(i % 2 == 0 ? connect(hosts[0], hosts[1]) : connect(hosts[1], hosts[0]));
  std::vector<std::thread> threads;
  for (std::size_t which = 0; which < pairs.size(); ++which) {
    threads.emplace_back([&, which] {
      for (std::uint64_t i = 0; i < 60; ++i) {
        const Bytes bytes = pattern(30'000 + i * 1000, i * 8 + which);
        Request* request = post_until_taken(*pairs[which].sender, bytes, nullptr);
        ASSERT_NE(request, nullptr);
        ASSERT_TRUE(finish(*request));
      }
    });
    threads.emplace_back([&, which] {
      for (std::uint64_t i = 0; i < 60; ++i) {
        Bytes bytes(30'000 + i * 1000);
        const auto request = post_recv(*pairs[which].receiver, bytes);
        ASSERT_TRUE(request && *request != nullptr);
        ASSERT_TRUE(finish(**request));
        ASSERT_EQ(bytes, pattern(bytes.size(), i * 8 + which));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A NIC connected to itself: each queue loops its own frames back.
TEST_P(Queues, ANicReachesItselfOnEachQueue) {
  TwoHosts hosts(options());
  std::vector<Pair> pairs;
  for (int i = 0; i < 3; ++i) {
    pairs.push_back(connect(hosts[0], hosts[0]));
    EXPECT_EQ(lane_of(*pairs.back().sender), lane_of(*pairs.back().receiver));
    const Bytes sent = pattern(20'000, static_cast<std::uint64_t>(i));
    Bytes received(sent.size());
    const auto receiving = post_recv(*pairs.back().receiver, received);
    Request* sending = post_until_taken(*pairs.back().sender, sent, nullptr);
    ASSERT_TRUE(receiving && *receiving != nullptr && sending != nullptr);
    ASSERT_TRUE(finish(**receiving));
    ASSERT_TRUE(finish(*sending));
    EXPECT_EQ(received, sent);
  }
}

TEST_P(Queues, AllPollersStartAndEndWithTheNic) {
  test::LogCapture log;
  auto hosts = std::make_unique<TwoHosts>(options());
  const auto source = hosts->sources[0];
  ASSERT_TRUE((*hosts)[0].listen(0, {}));
  EXPECT_THAT(log.infos(), testing::Contains(HasSubstr("3 lanes, their pollers")));
  hosts.reset();
  EXPECT_EQ(source->threads_ended, 3);
}

// No connection is accepted, and closing the listener resets those on all queues.
TEST_P(Queues, ClosedListenerResetsPendingConnectionsOfEveryQueue) {
  TwoHosts hosts(options());
  std::vector<SendCommPtr> senders;
  {
    auto listener = hosts[1].listen(0, {});
    ASSERT_TRUE(listener);
    for (int i = 0; i < 3; ++i) {
      auto sender = hosts[0].begin_connect(0, (*listener)->handle(), {});
      ASSERT_TRUE(sender);
      senders.push_back(std::move(*sender));
    }
    for (SendCommPtr& sender : senders)
      for (Result<bool> ready = false; !*ready; ready = sender->is_ready()) {
        std::this_thread::yield();
        ASSERT_TRUE(ready);
      }
  }
  const Bytes bytes(4U << 20U);
  for (SendCommPtr& sender : senders) {
    Request* request = post_until_taken(*sender, bytes, nullptr);
    if (request != nullptr) {
      EXPECT_FALSE(finish(*request));
    }
  }
}

}  // namespace
}  // namespace ztcp::ustack
