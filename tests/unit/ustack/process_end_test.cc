// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A process that ends without closing its connections, over links in memory: Transport::drain()
// notifies its peers, so that their requests fail long before a timeout.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/cpu_share.h"
#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::ustack {
namespace {

using namespace test;

constexpr auto kAtOnce = std::chrono::seconds(2);

// The error of `request`; nothing if it does not fail in time.
std::optional<Error> failure_of(Request& request) {
  const auto ends = std::chrono::steady_clock::now() + kAtOnce;
  while (std::chrono::steady_clock::now() < ends) {
    if (const auto done = request.test({}); !done) return done.error();
    std::this_thread::yield();
  }
  return std::nullopt;
}

class ProcessEnd : public testing::TestWithParam<config::PollerMode> {
 protected:
  // A drain timeout that allows for retransmissions of the notification.
  TwoHosts hosts{{.mode = GetParam(), .drain_timeout_ms = 5000}};
  test::LogCapture log;

  void expect_told(Request& request) {
    const auto error = failure_of(request);
    ASSERT_TRUE(error) << "the request did not fail in time";
    EXPECT_EQ(error->code, Errc::kPeerClosed);
    EXPECT_NE(log.warned().find("the peer's process ended without closing the connection"),
              std::string::npos)
        << log.warned();
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, ProcessEnd,
                         testing::Values(config::PollerMode::kShared,
                                         config::PollerMode::kDedicated),
                         mode_name);

TEST_P(ProcessEnd, WaitingReceiverIsNotifiedByAnIdleSender) {
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes buffer(100);
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  hosts[0].drain();
  expect_told(**receiving);
}

TEST_P(ProcessEnd, ReceiverIsNotifiedByASenderWithAMessageInFlight) {
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes buffer(8U << 20U);
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  const Bytes first(4U << 20U);  // The second message stays in flight: no buffer is posted for it.
  const Bytes second(4U << 20U);
  ASSERT_NE(post_until_taken(*pair.sender, first, nullptr), nullptr);
  ASSERT_NE(post_until_taken(*pair.sender, second, nullptr), nullptr);
  ASSERT_TRUE(finish(**receiving));
  Bytes rest(second.size());
  hosts[0].drain();
  const auto again = post_recv(*pair.receiver, rest);
  if (!again) {
    EXPECT_EQ(again.error().code, Errc::kPeerClosed);
    return;
  }
  ASSERT_NE(*again, nullptr);
  expect_told(**again);
}

TEST_P(ProcessEnd, SenderIsNotifiedByAReceiver) {
  Pair pair = connect(hosts[0], hosts[1]);
  const Bytes large(4U << 20U);  // No buffer is posted for it.
  Request* sending = post_until_taken(*pair.sender, large, nullptr);
  ASSERT_NE(sending, nullptr);
  hosts[1].drain();
  expect_told(*sending);
}

// The receiver's notification follows the last acknowledgement, so the sender first sees its
// message complete.
TEST_P(ProcessEnd, SendCompletesIfTheReceiverHadTheMessage) {
  Pair pair = connect(hosts[0], hosts[1]);
  const Bytes sent = pattern(300'000, 1);
  Bytes received(sent.size());
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  Request* sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  ASSERT_TRUE(finish(**receiving));
  hosts[1].drain();
  EXPECT_TRUE(finish(*sending));
  EXPECT_TRUE(log.warnings().empty()) << log.warned();
}

// NCCL's threads of the ending process may still poll: their requests stay pending rather than
// fail.
TEST_P(ProcessEnd, RequestsOfTheEndingProcessStayPending) {
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes buffer(100, std::byte{0xee});
  const auto receiving = post_recv(*pair.receiver, buffer);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  hosts[1].drain();
  const auto done = (*receiving)->test({});
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
  EXPECT_EQ(buffer, Bytes(100, std::byte{0xee}));
  // Closing is still allowed.
  pair.receiver.reset();
}

TEST_P(ProcessEnd, DrainReturnsOnceThePeerIsNotified) {
  Pair pair = connect(hosts[0], hosts[1]);
  const Bytes large(4U << 20U);
  ASSERT_NE(post_until_taken(*pair.sender, large, nullptr), nullptr);
  const auto begun = std::chrono::steady_clock::now();
  hosts[0].drain();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kAtOnce);
}

// The processes of a job end shortly after each other. The first resets its open connections, or
// the second would wait for the acknowledgement of its notification.
TEST_P(ProcessEnd, DrainDoesNotWaitForAPeerThatEndedBefore) {
  for (const std::size_t first : {0U, 1U}) {
    SCOPED_TRACE(first == 0 ? "the sender ends first" : "the receiver ends first");
    TwoHosts both{{.mode = GetParam(), .drain_timeout_ms = 5000}};
    Pair pair = connect(both[0], both[1]);
    both[first].drain();
    if (first == 0)
      pair.sender.reset();
    else
      pair.receiver.reset();
    both.transports[first].reset();
    const auto begun = std::chrono::steady_clock::now();
    both[1 - first].drain();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, kAtOnce);
  }
}

// NCCL may still poll a connect of the ending process when its timeout for the link expires.
TEST_P(ProcessEnd, ConnectThatWaitsForTheLinkDoesNotFail) {
  std::atomic<LinkState> state{LinkState::kDown};
  link::MemoryLinkOptions cable;
  cable.mtu_bytes = 9000;
  cable.states = {&state, nullptr};
  auto source = std::make_shared<MemoryNics>();
  source->add("mem0", link::make_memory_links(cable).first);
  config::Fabric fabric = one_nic_fabric(0, {.mode = GetParam()});
  fabric.tcp.connect_timeout_ms = 1500;
  const auto transport = *create(fabric, test::cpus_of_this_process(), nullptr, source);
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const auto sender = transport->begin_connect(0, (*listener)->handle(), {});
  ASSERT_TRUE(sender);
  transport->drain();
  const auto ends = std::chrono::steady_clock::now() + std::chrono::milliseconds(1600);
  while (std::chrono::steady_clock::now() < ends) {
    const auto ready = (*sender)->is_ready();
    ASSERT_TRUE(ready) << ready.error().where;
    ASSERT_FALSE(*ready);
    std::this_thread::yield();
  }
  EXPECT_TRUE(log.warnings().empty()) << log.warned();
}

}  // namespace
}  // namespace ztcp::ustack
