// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Comms over the kernel's loopback. No test sleeps: every loop polls as NCCL does, until the
// library answers.
#include "transport/sockets/socket_transport.h"

#include <string>

#include <gtest/gtest.h>

#include "core/listen_address.h"
#include "tests/support/cpu_share.h"
#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/support/transfers.h"
#include "tests/unit/sockets/two_hosts.h"

namespace ztcp::sockets {
namespace {

using namespace test;

class Transfers : public testing::TestWithParam<HostKind> {
 protected:
  TwoHosts hosts_{GetParam().options};
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, Transfers,
    testing::Values(HostKind{"IPv4", {}}, HostKind{"IPv6", {.address = kLoopback6}},
                    HostKind{"ThreadOfItsOwn", {.mode = config::PollerMode::kDedicated}},
                    HostKind{"OneWorker", {.workers = 1}},
                    HostKind{"WorkersAndAThread",
                             {.mode = config::PollerMode::kDedicated, .workers = 3}},
                    HostKind{"TwoQueues", {.workers = 8}},
                    HostKind{"ManyFlows", {.workers = 4, .flows = 8}},
                    HostKind{"WorkersForOneFlow", {.workers = 2, .flows = 1}}),
    [](const auto& row) { return row.param.name; });

TEST_P(Transfers, EveryByteArrivesOnceAndInOrder) {
  Pair pair = connect(hosts_[0], hosts_[1]);
  expect_carries_every_size(pair);
}

TEST_P(Transfers, ADeviceConnectsToItself) {
  Pair pair = connect(hosts_[0], hosts_[0]);
  expect_carries(pair, pattern(400'000, 3));
}

TEST_P(Transfers, TwoHundredConnectionsComeAndGo) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    Pair pair = connect(hosts_[0], hosts_[1]);
    expect_carries(pair, pattern(100, i));
  }
}

TEST(InitLine, StatesWhetherNcclsThreadsOrItsOwnDriveADevice) {
  const auto line = [](config::PollerMode mode) {
    return TwoHosts({.mode = mode})[0].describe_device(0);
  };
  constexpr const char* kShared =
      "; in NCCL's threads; no workers (as poller.workers says), 1 flow, 1 RX queue";
  constexpr const char* kOwn =
      "; a thread of its own; no workers (as poller.workers says), 1 flow, 1 RX queue";
  EXPECT_TRUE(line(config::PollerMode::kAuto).ends_with(kShared));
  EXPECT_TRUE(line(config::PollerMode::kShared).ends_with(kShared));
  EXPECT_TRUE(line(config::PollerMode::kDedicated).ends_with(kOwn));
}

TEST(InitLine, StatesOverHowManyReceiveQueuesFlowsAreSpread) {
  const auto line = [](std::uint32_t rx_queues) {
    Device device = loopback_device();
    device.rx_queues = rx_queues;
    return (*create(host_settings(), {device}, cpus_of_this_process()))->describe_device(0);
  };
  EXPECT_TRUE(line(4).ends_with(", spread over 4 RX queues"));
  EXPECT_TRUE(line(0).ends_with(", RX queues not told by the driver"));
}

// NCCL 2.30 refuses a job if its hosts show different numbers of CollNet devices.
TEST(Plan, NcclDevicesFollowTheFabricAlone) {
  config::Fabric fabric = host_settings({});
  fabric.tunes_channels = true;
  fabric.nics.resize(1);
  fabric.nics[0].driver = config::NicDriver::kSocket;
  for (const std::size_t count : {1, 8, 128}) {
    const auto transport =
        *create(fabric, {loopback_device()}, cpus(count, count, 0, {1, "1 GPU"}));
    EXPECT_EQ(transport->devices()[0].nccl_devices, nccl_devices(fabric, fabric.nics[0])) << count;
  }
}

// NCCL or a framework may narrow the CPU mask between init and the first listen. That changes where
// threads run, but not their number, nor the NCCL devices.
TEST(Plan, IsTheSameAtInitAndAtListenDespiteANarrowedCpuMask) {
  config::Fabric fabric = host_settings({.workers = -1});
  fabric.tunes_channels = true;
  const auto transport = *create(fabric, {loopback_device()}, cpus(128, 128, 0, {8, "8 GPUs"}));
  constexpr const char* kPlan = "12 lanes (16 CPUs for each of 8 ranks (8 GPUs)), 1 flow";
  EXPECT_NE(transport->describe_device(0).find(kPlan), std::string::npos);
  EXPECT_EQ(transport->devices()[0].nccl_devices, 8);
  const test::LogCapture log;
  ASSERT_TRUE(transport->listen(0, {}));
  EXPECT_NE(log.infos().back().find(kPlan), std::string::npos) << log.infos().back();
  const std::size_t now = cpus_of_this_process().allowed.size();
  ASSERT_EQ(log.warnings().size(), now < 12 ? 1U : 0U) << log.warned();
  if (now < 12) {
    EXPECT_NE(log.warnings()[0].find("had 128 CPUs (0-127) when it was planned: 12 threads share"),
              std::string::npos)
        << log.warnings()[0];
  }
}

TEST_P(Transfers, AClosedReceiverTouchesNoBufferAfterwards) {
  Pair pair = connect(hosts_[0], hosts_[1]);
  expect_closing_leaves_the_buffer(pair);
}

TEST_P(Transfers, AnAbortIsReportedToThePeerAtOnce) {
  for (const bool is_sender : {true, false}) {
    Pair pair = connect(hosts_[0], hosts_[1]);
    expect_an_abort_is_heard(pair, is_sender);
  }
}

TEST_P(Transfers, DeregisteringMemoryInFlightEndsTheConnection) {
  Pair pair = connect(hosts_[0], hosts_[1]);
  expect_deregistering_ends_it(pair);
}

TEST(Connect, ToAClosedPortFailsAndNamesThePeer) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const PeerHandle handle = (*listener)->handle();
  listener->reset();
  hosts.transports[1].reset();
  auto sender = hosts[0].begin_connect(0, handle, {});
  ASSERT_TRUE(sender);
  const test::LogCapture log;
  Result<bool> ready = false;
  while (ready && !*ready) ready = (*sender)->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kRefused);
  ASSERT_FALSE(log.warnings().empty());
  EXPECT_NE(log.warnings()[0].find("127.0.0.1:"), std::string::npos) << log.warnings()[0];
  EXPECT_NE(log.warnings()[0].find("; 127.0.0.1 is an address of this host itself (lo)"),
            std::string::npos)
      << log.warnings()[0];
}

TEST(Connect, ToAnotherFamilyIsRefusedWithBothAddresses) {
  TwoHosts four;
  TwoHosts six({.address = kLoopback6});
  auto listener = six[0].listen(0, {});
  ASSERT_TRUE(listener);
  const test::LogCapture log;
  const auto sender = four[0].begin_connect(0, (*listener)->handle(), {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_NE(log.warnings()[0].find("127.0.0.1"), std::string::npos) << log.warnings()[0];
  EXPECT_NE(log.warnings()[0].find("[::1]:"), std::string::npos) << log.warnings()[0];
}

TEST(Connect, ToSharedMemoryIsRefusedWithBothAddresses) {
  TwoHosts hosts;
  const test::LogCapture log;
  const auto bytes =
      to_bytes({.endpoint = {*parse_ip("10.99.0.1"), 7471}, .watch = {}, .in_shared_memory = true});
  const auto sender = hosts[0].begin_connect(0, {TransportKind::kUstack, bytes}, {});
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, Errc::kNoRoute);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_NE(log.warnings()[0].find("127.0.0.1 to 10.99.0.1:7471: the peer's NIC is shared memory"),
            std::string::npos)
      << log.warnings()[0];
}

// Processes that drive a NIC themselves connect to that port, so that their death is noticed.
TEST(Listen, AHandleNamesThePortOfTheDeathWatch) {
  const auto watch_port = [](IpAddress address, const char* watch_interface) {
    config::Fabric fabric = host_settings();
    fabric.messages.watch_interface = watch_interface;
    auto transport = create(fabric, {loopback_device(address)}, cpus_of_this_process());
    const auto listener = (*transport)->listen(0, {});
    return parse_listen_address((*listener)->handle().bytes)->watch.port;
  };
  EXPECT_NE(watch_port(kLoopback4, "lo"), 0);
  EXPECT_EQ(watch_port(kLoopback4, "off"), 0);
  EXPECT_NE(watch_port(kLoopback6, "lo"), 0);
}

// The range is one port, which another listener has.
TEST(Listen, ATakenPortRangeIsNamedAndUsableOnceItIsFree) {
  Device device = loopback_device();
  auto anywhere = create(host_settings(), {device}, cpus_of_this_process());
  const auto first = (*anywhere)->listen(0, {});
  ASSERT_TRUE(first);
  std::uint16_t port = 0;
  {
    const test::LogCapture log;
    auto other = create(host_settings(), {device}, cpus_of_this_process());
    ASSERT_TRUE((*other)->listen(0, {}));
    const std::string line = log.infos().at(1);  // After the death watch's line.
    const std::size_t at = line.find("listening at 127.0.0.1:");
    ASSERT_NE(at, std::string::npos) << line;
    port = static_cast<std::uint16_t>(std::stoi(line.substr(at + 23)));
    device.first_port = device.last_port = port;
    auto third = create(host_settings(), {device}, cpus_of_this_process());
    EXPECT_FALSE((*third)->listen(0, {}));
    ASSERT_EQ(log.warnings().size(), 1U);
    EXPECT_NE(log.warnings()[0].find("widen first_port and last_port in test.conf"),
              std::string::npos)
        << log.warnings()[0];
  }
  auto after = create(host_settings(), {device}, cpus_of_this_process());
  EXPECT_TRUE((*after)->listen(0, {})) << "connections in TIME_WAIT do not matter";
}

}  // namespace
}  // namespace ztcp::sockets
