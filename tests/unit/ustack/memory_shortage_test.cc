// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An allocation that fails (ulimit -v) ends only the call or the connection that needed it.
#include <array>
#include <cstddef>
#include <memory>
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/failing_connect.h"
#include "tests/support/log_capture.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/ustack/lane.h"

namespace ztcp::ustack {
namespace {

using namespace test;

TEST(MemoryShortage, FailedConnectDoesNotHarmTheNicAndOtherConnections) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  const auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  std::size_t failed = 0;
  for (std::size_t nth = 1;; ++nth) {
    FailingAllocation failing(nth);
    try {
      const auto comm =
          failing.during([&] { return hosts[0].begin_connect(0, (*listener)->handle(), {}); });
      EXPECT_TRUE(comm);
      if (!failing.has_failed())
        break;  // Otherwise a caller did without the memory: std::stable_sort() can.
    } catch (const std::bad_alloc&) {
      ++failed;
    }
  }
  EXPECT_GE(failed, 3U) << "the comm, its session, the session's lanes";
  expect_carries(pair);
  hosts[0].drain();  // Visits every client.
}

// Even when memory for the log line is short, no connection writes to the memory afterwards.
TEST(MemoryShortage, DeregistrationStillEndsReceivesIntoTheMemory) {
  TwoHosts hosts;
  std::size_t failed = 0;
  for (std::size_t nth = 1;; ++nth) {
    Pair pair = connect(hosts[0], hosts[1]);
    Bytes received(100);
    const auto key = pair.receiver->register_memory({received.data(), received.size()});
    ASSERT_TRUE(key);
    const auto receiving = post_recv(*pair.receiver, received);
    ASSERT_TRUE(receiving && *receiving != nullptr);
    FailingAllocation failing(nth);
    try {
      EXPECT_TRUE(failing.during([&] { return pair.receiver->deregister_memory(*key); }));
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    EXPECT_FALSE((*receiving)->test({})) << "its connection has ended";
    if (!failing.has_failed()) break;
  }
  EXPECT_GE(failed, 1U) << "the log line";
}

// Two NICs with pollers that have no threads: the test runs every turn.
std::array<std::shared_ptr<Nic>, 2> joined_nics() {
  auto [left, right] = link::make_memory_links({});
  std::array<std::unique_ptr<link::Link>, 2> links = {std::move(left), std::move(right)};
  std::array<std::shared_ptr<Nic>, 2> nics;
  for (int host = 0; host < 2; ++host) {
    const config::Nic nic = one_nic_fabric(host).nics[0];
    EngineConfig engine;
    engine.stack.mac = nic.mac;
    engine.stack.address = nic.address;
    engine.secret = {1, static_cast<std::uint64_t>(host)};
    auto& made = nics[static_cast<std::size_t>(host)] = std::make_shared<Nic>(nic);
    made->claim = std::make_unique<NicClaim>();
    made->listen_endpoint = {nic.address.address, engine.listen_port};
    comms::PollerConfig poller;
    poller.name = nic.name;
    auto& link = links[static_cast<std::size_t>(host)];
    made->pollers.push_back(std::make_unique<comms::Poller>(
        poller,
        std::make_unique<Lane>(comms::Poller::read_clock(), poller.name, std::move(link), engine)));
  }
  return nics;
}

// Fails each allocation of an accept. It runs inside a turn, where no caller could get the error.
TEST(MemoryShortage, FailedAcceptRefusesOnlyThatPeerWithTheReason) {
  const auto nics = joined_nics();
  const test::LogCapture log;
  const FailingConnects counts = connect_while_memory_ends(nics, Fails::kAcceptAlone);
  EXPECT_GE(counts.refused, 5U)
      << "the session, its lanes, its bounce pages, its comm, its entries";
  EXPECT_EQ(counts.dialled_again, 1U) << "the entry of a stream without a complete hello";
  ASSERT_FALSE(log.warnings().empty());
  EXPECT_THAT(log.warnings()[0],
              testing::HasSubstr("the peer refused: its process has no memory left"));
}

}  // namespace
}  // namespace ztcp::ustack
