// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An allocation that fails (ulimit -v) ends the call or the connection that needed it, and nothing
// else.
#include <array>
#include <cstddef>
#include <memory>
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/failing_allocation.h"
#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/comms/listener.h"
#include "transport/comms/send_comm.h"
#include "transport/core/listen_address.h"

namespace ztcp::ustack {
namespace {

using namespace test;

void expect_well(Pair& pair) {
  const Bytes sent = pattern(100, 1);
  Bytes received(100);
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  Request* const sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  // Both in turn: there may be no other thread.
  for (Result<bool> done = false; done && !*done; done = (*receiving)->test({}))
    ASSERT_TRUE(sending->test({}));
  EXPECT_EQ(received, sent);
}

TEST(MemoryShortage, OfAConnectLeavesTheNicAndItsOtherConnectionsWell) {
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
      if (!failing.has_failed()) break;  // Else something did without: std::stable_sort() can.
    } catch (const std::bad_alloc&) {
      ++failed;
    }
  }
  EXPECT_GE(failed, 3U) << "the comm, its session, the session's lanes";
  expect_well(pair);
  hosts[0].drain();  // Visits every client.
}

// Whatever its lines need: nobody writes there afterwards.
TEST(MemoryShortage, OfADeregistrationEndsWhatWritesThereAllTheSame) {
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
  EXPECT_GE(failed, 1U) << "the line";
}

// Two NICs without threads of their own: every turn is the test's.
std::array<std::shared_ptr<Nic>, 2> joined_nics() {
  auto [left, right] = link::make_memory_links({});
  std::array<std::unique_ptr<link::Link>, 2> links = {std::move(left), std::move(right)};
  std::array<std::shared_ptr<Nic>, 2> nics;
  for (int host = 0; host < 2; ++host) {
    const config::Nic nic = one_nic_fabric(host).nics[0];
    EngineConfig engine;
    engine.stack.mac = nic.mac;
    engine.stack.address = nic.address.v4();
    engine.secret = {1, static_cast<std::uint64_t>(host)};
    auto& made = nics[static_cast<std::size_t>(host)] = std::make_shared<Nic>(nic);
    made->listen_endpoint = {nic.address.address, engine.listen_port};
    comms::PollerConfig poller;
    poller.name = nic.name;
    made->pollers.push_back(
        std::make_unique<Poller>(poller, std::move(links[static_cast<std::size_t>(host)]), engine));
  }
  return nics;
}

// Inside a turn, where no caller is to be told: each of the allocations that accepting takes.
TEST(MemoryShortage, OfAnAcceptRefusesThatPeerByNameAndNobodyElse) {
  auto nics = joined_nics();
  test::LogCapture log;
  std::size_t refused = 0;
  std::size_t dialled_again = 0;
  const auto listener = comms::CommListener::open(nics[1]);
  ASSERT_TRUE(listener);
  const auto to = parse_listen_address((*listener)->handle().bytes);
  ASSERT_TRUE(to);
  Pair pair;
  for (std::size_t nth = 1;; ++nth) {
    FailingAllocation failing(nth);
    auto sender = comms::SendingComm::connect(nics[0], to->endpoint, to->cookie);
    ASSERT_TRUE(sender);
    pair.receiver = nullptr;
    Result<bool> ready = false;
    while (ready && (!*ready || pair.receiver == nullptr)) {
      ready = (*sender)->is_ready();
      auto accepted = failing.during([&] { return (*listener)->accept(); });
      ASSERT_TRUE(accepted);
      if (*accepted != nullptr) pair.receiver = std::move(*accepted);
    }
    if (!ready) {
      ++refused;
      EXPECT_EQ(ready.error().code, Errc::kOutOfMemory);
      continue;
    }
    pair.sender = std::move(*sender);
    expect_well(pair);
    if (!failing.has_failed()) break;
    ++dialled_again;
  }
  EXPECT_GE(refused, 5U) << "the session, its lanes, its bounce pages, its comm, its entries";
  EXPECT_EQ(dialled_again, 1U) << "the place of who has not yet said what it wants";
  expect_well(pair);
  ASSERT_FALSE(log.warnings().empty());
  EXPECT_THAT(log.warnings()[0],
              testing::HasSubstr("the peer refused: its process has no memory left"));
  pair = {};
  nics[1].reset();
}

}  // namespace
}  // namespace ztcp::ustack
