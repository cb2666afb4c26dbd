// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/failure.h"

#include <chrono>

#include <gtest/gtest.h>

#include "transport/link/memory_link.h"
#include "transport/msg/reason.h"
#include "transport/ustack/lane.h"

namespace ztcp::comms {
namespace {

using namespace std::chrono_literals;

constexpr Endpoint kPeer{Ipv4Address{0x0a010002}, 7471};

class FailureLine : public testing::Test {
 protected:
  static PollerConfig config() {
    PollerConfig config;
    config.name = "mem0";
    return config;
  }
  std::string line(Direction direction) {
    return failure_line(failure, direction, kPeer, poller.backend());
  }
  Poller poller{config(), std::make_unique<ustack::Lane>(Poller::read_clock(), config().name,
                                                         link::make_memory_links({}).first,
                                                         ustack::EngineConfig{})};
  Failure failure;
};

// The counters are this connection's, not the NIC's.
TEST_F(FailureLine, HasTheConnectionsOwnNumbers) {
  failure.error = {Errc::kTimedOut, 0, "user timeout"};
  failure.messages_done = 5;
  failure.bytes_done = 1000;
  failure.in_flight = 2;
  failure.at = TimePoint(20s);
  failure.health = {.heard = TimePoint(12s),
                    .srtt = 85us,
                    .cwnd_bytes = 120'000,
                    .unacked_bytes = 60'000,
                    .retransmitted_bytes = 4380,
                    .timeouts = 9};
  EXPECT_EQ(
      line(Direction::kSend),
      "sending to 10.1.0.2:7471 failed: the peer stopped answering (user timeout); 5 messages "
      "(1000 bytes) done, 2 in flight; the peer was last heard 8000 ms before, round trip 85 "
      "us, 60000 bytes unacknowledged of a window of 120000, 4380 bytes retransmitted, 9 "
      "timeouts; is the process on that host alive, and may TCP pass between the two NICs?");
  EXPECT_EQ(
      line(Direction::kReceive),
      "receiving from 10.1.0.2:7471 failed: the peer stopped answering (user timeout); 5 "
      "messages (1000 bytes) done, 2 in flight; the peer was last heard 8000 ms before, round "
      "trip 85 us, 4380 bytes retransmitted, 9 timeouts; is the process on that host alive, "
      "and may TCP pass between the two NICs?");
}

TEST_F(FailureLine, HasTheKernelsNumbersWithoutTheTimeOfTheLastAnswer) {
  failure.error = {Errc::kPeerClosed, 104, "recvmsg"};
  failure.health.srtt = 85us;
  failure.health.retransmitted_bytes = 1448;
  EXPECT_NE(
      line(Direction::kReceive).find(" in flight; round trip 85 us, 1448 bytes retransmitted"),
      std::string::npos)
      << line(Direction::kReceive);
}

TEST_F(FailureLine, DescribesErrnoInWords) {
  failure.error = {Errc::kNoRoute, 101, "connect"};
  EXPECT_NE(line(Direction::kSend).find("(connect: Network is unreachable)"), std::string::npos)
      << line(Direction::kSend);
}

TEST_F(FailureLine, LeavesOutNumbersThatNoStreamHas) {
  failure.error = {Errc::kTimedOut, 0, "tcp connect"};
  failure.at = TimePoint(20s);
  EXPECT_EQ(line(Direction::kSend),
            "sending to 10.1.0.2:7471 failed: the peer stopped answering (tcp connect); 0 messages "
            "(0 bytes) done, 0 in flight; is the process on that host alive, and may TCP pass "
            "between the two NICs?");
}

TEST_F(FailureLine, RefusalIsDescribedOnceWithAdvice) {
  failure.error = {Errc::kRefused, 0, "the peer refused"};
  failure.session = {.reason = msg::Reason::kKeyUnexpected, .from_peer = true};
  EXPECT_EQ(line(Direction::kSend),
            "sending to 10.1.0.2:7471 failed: the peer refused: a cluster key is set here but not "
            "there; 0 messages (0 bytes) done, 0 in flight; write the same messages.cluster_key "
            "into both hosts' ztcp.conf (openssl rand -hex 32)");
  failure.session.from_peer = false;
  EXPECT_EQ(line(Direction::kReceive).find("refused"), std::string::npos)
      << "this end gave the reason";
  failure.session = {};
  EXPECT_NE(line(Direction::kSend).find("failed: the peer refused; 0 messages"), std::string::npos)
      << line(Direction::kSend);
}

// Without a reason from either end, a firewall may have refused the connection.
TEST_F(FailureLine, FirewallIsSuspectedOnlyWhenNeitherEndGaveAReason) {
  failure.error = {Errc::kRefused, 111, "connect"};
  EXPECT_NE(line(Direction::kSend).find("the peer refused (connect: Connection refused)"),
            std::string::npos);
  EXPECT_NE(line(Direction::kSend).find("firewall"), std::string::npos);
  for (std::uint32_t i = 1; i <= msg::kLastReason; ++i) {
    failure.session = {.reason = static_cast<msg::Reason>(i), .from_peer = true};
    EXPECT_EQ(line(Direction::kSend).find("firewall"), std::string::npos) << i;
  }
}

}  // namespace
}  // namespace ztcp::comms
