// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An allocation that fails (ulimit -v) inside a turn ends the connection that needed it, and
// nothing else.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/failing_allocation.h"
#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/unit/sockets/two_hosts.h"
#include "transport/comms/listener.h"
#include "transport/comms/nic.h"
#include "transport/comms/send_comm.h"
#include "transport/core/listen_address.h"
#include "transport/sockets/engine.h"

namespace ztcp::sockets {
namespace {

using namespace test;

// Without a thread of its own: every turn is the test's.
struct Host final : comms::Nic {
  explicit Host(std::uint64_t secret) : comms::Nic("lo") {
    EngineConfig config;
    config.device = loopback_device();
    config.session.ack_is_delivery = false;
    config.session.flows = 1;
    config.secret = {1, secret};
    auto engine = *Engine::open(config);
    listen_endpoint = engine->listen_endpoint();
    comms::PollerConfig poller;
    poller.name = "lo";
    pollers.push_back(std::make_unique<comms::Poller>(poller, std::move(engine)));
  }
  PeerHandle issue_handle(const msg::Cookie& cookie) override {
    return {TransportKind::kSockets, to_bytes({listen_endpoint, {}, cookie})};
  }
};

void expect_well(Pair& pair) {
  const Bytes sent = pattern(100, 1);
  Bytes received(100);
  const auto receiving = post_recv(*pair.receiver, received);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  Request* const sending = post_until_taken(*pair.sender, sent, nullptr);
  ASSERT_NE(sending, nullptr);
  for (Result<bool> done = false; done && !*done; done = (*receiving)->test({}))
    ASSERT_TRUE(sending->test({}));
  EXPECT_EQ(received, sent);
}

TEST(MemoryShortage, EndsAConnectThatNeedsItAndNothingElse) {
  const std::array hosts = {std::make_shared<Host>(1), std::make_shared<Host>(2)};
  const test::LogCapture log;
  const auto listener = comms::CommListener::open(hosts[1]);
  ASSERT_TRUE(listener);
  const auto to = parse_listen_address((*listener)->handle().bytes);
  ASSERT_TRUE(to);
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::size_t refused = 0;
  std::size_t dialled_again = 0;
  Pair pair;
  for (std::size_t nth = 1;; ++nth) {
    FailingAllocation failing(nth);
    auto sender = comms::SendingComm::connect(hosts[0], to->endpoint, to->cookie);
    ASSERT_TRUE(sender);
    pair.receiver = nullptr;
    Result<bool> ready = false;
    while (ready && (!*ready || pair.receiver == nullptr)) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << nth;
      ready = failing.during([&] { return (*sender)->is_ready(); });
      auto accepted = failing.during([&] { return (*listener)->accept(); });
      ASSERT_TRUE(accepted);
      if (*accepted != nullptr) pair.receiver = std::move(*accepted);
    }
    if (!ready) {
      ++refused;
      EXPECT_EQ(ready.error().code, Errc::kOutOfMemory) << nth;
      continue;
    }
    pair.sender = std::move(*sender);
    expect_well(pair);
    if (!failing.has_failed()) break;
    ++dialled_again;
  }
  EXPECT_GE(refused, 2U);
  EXPECT_GE(dialled_again, 1U);
  expect_well(pair);
  const auto warnings = log.warnings();
  EXPECT_TRUE(std::none_of(warnings.begin(), warnings.end(), [](const std::string& line) {
    return line.find("driving it met") != std::string::npos;
  }));
}

}  // namespace
}  // namespace ztcp::sockets
