// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/lane.h"

#include <fstream>
#include <string>
#include <sys/socket.h>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/descriptor.h"
#include "core/listen_address.h"
#include "core/socket_address.h"
#include "tests/support/log_capture.h"
#include "tests/unit/sockets/lane_host.h"
#include "transport/comms/comm.h"
#include "transport/comms/listener.h"

namespace ztcp::sockets {
namespace {

// All descriptors of the budget are in use.
TEST(Lane, ADialWithoutADescriptorLogsTheCommandThatHelps) {
  const auto host = std::make_shared<LaneHost>(
      1, /*max_streams=*/0, /*count=*/1,
      [](LaneConfig& config) { config.session.redial_window = std::chrono::milliseconds(200); });
  const test::LogCapture log;
  auto sender = comms::SendingComm::connect(host, {kLoopback4, 1}, {});
  ASSERT_TRUE(sender);
  Result<bool> ready = false;
  while (ready && !*ready) ready = (*sender)->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kOutOfMemory);
  ASSERT_FALSE(log.warnings().empty());
  EXPECT_EQ(log.warnings().size(), 2U) << "the shortage, and the failure: " << log.warned();
  EXPECT_THAT(log.warnings()[0],
              testing::MatchesRegex(
                  "lo: no descriptor for another connection: [0-9]+ of [0-9]+ \\(ulimit -n\\) are "
                  "in use, 0 of them by connections, and [0-9]+ are left to the application; .*"));
}

std::size_t size_of_descriptor_table() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::size_t size = 0;
  while (status >> word)
    if (word == "FDSize:") status >> size;
  return size;
}

// The kernel enlarges the table behind a wait, which a turn must not have.
TEST(Lane, TheDescriptorTableIsLargeEnoughFromTheStart) {
  ASSERT_LE(size_of_descriptor_table(), 256U);
  const LaneHost host(1, /*max_streams=*/300);
  EXPECT_GE(size_of_descriptor_table(), 300U);
}

// A receiver that has lost its sender connects only to see whether it listens (msg/sender_probe.h).
TEST(Lane, AConnectionThatIsClosedWithoutAHelloIsDealtToNoLane) {
  const auto host = std::make_shared<LaneHost>(1, /*max_streams=*/64, /*count=*/2);
  auto listener = comms::CommListener::open(host);
  ASSERT_TRUE(listener);
  const SocketAddress to = to_socket_address(host->listen_endpoint);
  for (const bool resets : {true, false, true}) {
    const Descriptor asking(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(asking.get(), to.get(), to.size_bytes), 0);
    const linger now{.l_onoff = resets ? 1 : 0, .l_linger = 0};
    setsockopt(asking.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  for (int turn = 0; turn < 10; ++turn) ASSERT_TRUE((*listener)->accept());
  const OwnConnection connection(host, **listener);
  ASSERT_NE(connection.receiver, nullptr);
  // The first of the round-robin.
  EXPECT_NE(connection.receiver->describe_peer().find("lane 0"), std::string::npos);
}

}  // namespace
}  // namespace ztcp::sockets
