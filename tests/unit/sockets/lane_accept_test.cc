// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Accepted connections: their receive queues, and the lanes to which they are dealt.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/descriptor.h"
#include "core/listen_address.h"
#include "core/socket_address.h"
#include "tests/support/log_capture.h"
#include "tests/unit/sockets/lane_host.h"
#include "transport/comms/comm.h"
#include "transport/comms/listener.h"
#include "transport/msg/record.h"

namespace ztcp::sockets {
namespace {

constexpr IpAddress kOther{Ipv4Address{0x7f000002}};  // Not the receiver's own.

// The kernel reports no receive queue over loopback, so the test supplies the numbers.
class AcceptedConnections : public testing::Test {
 protected:
  using Queue = std::optional<std::uint32_t>;

  void make(std::vector<Queue> queues, std::size_t lanes = 1, IpAddress from = kOther) {
    told = std::move(queues);
    const auto placement = std::make_shared<RxPlacement>(4);
    receiver = std::make_shared<LaneHost>(1, 64, lanes, [&](LaneConfig& config) {
      config.rx_placement = placement;
      config.device.rx_queues = 4;
      config.read_rx_queue = [this](const Fd&) { return told.at(asked++); };
    });
    sender = std::make_shared<LaneHost>(2, 64, 1,
                                        [&](LaneConfig& config) { config.device.address = from; });
    listener = *comms::CommListener::open(receiver);
  }
  // Returns the receiver's description of its peer, which names the lane's queue.
  std::string connect() {
    const ListenAddress address = *parse_listen_address(listener->handle().bytes);
    senders.push_back(*comms::SendingComm::connect(sender, address.endpoint, address.cookie));
    RecvCommPtr accepted;
    for (bool is_ready = false; accepted == nullptr || !is_ready;) {
      const auto ready = senders.back()->is_ready();
      if (!ready) {
        ADD_FAILURE() << ready.error().where;
        return {};
      }
      is_ready = *ready;
      if (accepted == nullptr) accepted = std::move(*listener->accept());
    }
    receivers.push_back(std::move(accepted));
    return receivers.back()->describe_peer();
  }
  bool has_refused(std::uint32_t flows) const {
    return receiver->lanes.front()->summary().ends_with(
        fmt::format("; {} refused_rx_queue", flows));
  }

  std::vector<Queue> told;  // The receive queues of successive flows.
  std::size_t asked = 0;
  std::shared_ptr<LaneHost> receiver;
  std::shared_ptr<LaneHost> sender;
  std::unique_ptr<comms::CommListener> listener;
  std::vector<SendCommPtr> senders;
  std::vector<RecvCommPtr> receivers;
};

TEST_F(AcceptedConnections, AreRefusedUntilTheyArriveOnAReceiveQueueWithFewerFlows) {
  make({7, 7, 7, 8, 9});
  for (int i = 0; i < 3; ++i) connect();
  EXPECT_EQ(asked, 5U);
  EXPECT_TRUE(has_refused(2)) << receiver->lanes.front()->summary();
  EXPECT_EQ(receiver->lanes.front()->summary().find("connections_failed"), std::string::npos);
}

TEST_F(AcceptedConnections, AreTakenAfterTheLastRefusalOnAnyReceiveQueue) {
  make(std::vector<Queue>(1 + 1 + RxPlacement::kMostRefusals, 7));
  connect();
  connect();
  EXPECT_EQ(asked, 2 + RxPlacement::kMostRefusals);
  EXPECT_TRUE(has_refused(RxPlacement::kMostRefusals)) << receiver->lanes.front()->summary();
}

// A refused session that connects again is not counted as another in the round-robin.
TEST_F(AcceptedConnections, KeepTheirLaneAfterARefusal) {
  make({7, 7, 7, 8, 9}, /*lanes=*/2);
  EXPECT_NE(connect().find("lane 0"), std::string::npos);
  EXPECT_NE(connect().find("lane 1"), std::string::npos);
  EXPECT_NE(connect().find("lane 0"), std::string::npos);
  EXPECT_EQ(asked, 5U);
}

TEST_F(AcceptedConnections, WithoutAKnownReceiveQueueAreTakenAndLoggedOnce) {
  const test::LogCapture log;
  make({std::nullopt, std::nullopt, std::nullopt}, /*lanes=*/2);
  for (int i = 0; i < 3; ++i) connect();
  EXPECT_EQ(asked, 3U);
  EXPECT_EQ(std::ranges::count(
                log.infos(),
                "lo: flows are not spread over its 4 RX queues: the driver does not report "
                "the queue of a flow from 127.0.0.2"),
            1);
}

// 64 silent strangers would cost as many system calls in each turn.
TEST(PendingConnections, AreCheckedAtIntervalsAndNotInEachTurn) {
  const auto host = std::make_shared<LaneHost>(1, 64, 2);
  comms::Doorbell doorbell;
  const TimePoint start = comms::Poller::read_clock();
  const Descriptor stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress to = to_socket_address(host->listen_endpoint);
  ASSERT_EQ(connect(stranger.get(), to.get(), to.size_bytes), 0);
  const auto has_rejected = [&] {
    std::string all;
    for (const Lane* one : host->lanes) all += one->summary();
    return all.find("1 rejected_cookies") != std::string::npos;
  };
  const auto turns_at = [&](Duration later) {
    for (int i = 0; i < 10; ++i)
      for (Lane* one : host->lanes) one->turn(start + later, doorbell);
  };
  turns_at(Duration::zero());
  turns_at(std::chrono::microseconds(100));
  std::array<std::byte, msg::kPreambleBytes + msg::kHeaderBytes + msg::Hello::kBody> hello;
  msg::encode_preamble(msg::kWireVersion, hello);
  msg::Hello unknown;
  unknown.is_new = true;
  unknown.epoch = unknown.flows_wanted = 1;
  msg::encode(unknown, std::span(hello).subspan(msg::kPreambleBytes));
  ASSERT_EQ(write(stranger.get(), hello.data(), hello.size()), static_cast<ssize_t>(hello.size()));
  turns_at(std::chrono::microseconds(500));
  EXPECT_FALSE(has_rejected());
  turns_at(std::chrono::microseconds(1500));
  EXPECT_TRUE(has_rejected());
}

// The warning comes while strangers connect, not only when the last connection has ended.
TEST_F(AcceptedConnections, FromStrangersAreWarnedOf) {
  const test::LogCapture log;
  make({});
  std::vector<Fd> strangers;
  while (log.warned().empty()) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    SocketAddress to = to_socket_address(receiver->listen_endpoint);
    ASSERT_EQ(::connect(fd.get(), to.get(), to.size_bytes), 0);
    ASSERT_GT(send(fd.get(), "GET / HTTP/1.0", 14, MSG_NOSIGNAL), 0);
    strangers.push_back(std::move(fd));
    if (strangers.size() == 32) strangers.clear();
    ASSERT_TRUE(listener->accept());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_THAT(log.warned(), testing::HasSubstr("connections without a valid hello"));
  EXPECT_THAT(log.warned(), testing::HasSubstr("rejected_bad_magic"));
}

TEST_F(AcceptedConnections, FromThisHostAreNotAskedForTheirReceiveQueue) {
  make({}, 1, kLoopback4);
  connect();
  EXPECT_EQ(asked, 0U);
}

}  // namespace
}  // namespace ztcp::sockets
