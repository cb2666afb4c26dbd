// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC with `gateway = "auto"` or `address = "auto"`: a job begins when a router has advertised
// itself, and fails by name where none does.
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/listen_address.h"
#include "tests/support/cpu_share.h"
#include "tests/support/log_capture.h"
#include "tests/support/router_advertisement.h"
#include "tests/unit/ustack/memory_nics.h"

namespace ztcp::ustack {
namespace {

using namespace test;
using namespace std::chrono_literals;

struct RoutedHost {
  explicit RoutedHost(std::uint32_t connect_timeout_ms, bool finds_address = false) {
    auto links = link::make_memory_links({.mtu_bytes = 9000});
    source->add("mem0", std::move(links.first));
    network = std::move(links.second);
    config::Fabric fabric = one_nic_fabric(0, {.address = "2001:db8::1/64"});
    if (finds_address)
      fabric.nics[0].address = config::kAutoAddress;
    else
      fabric.nics[0].gateway = config::kAutoGateway;
    fabric.tcp.connect_timeout_ms = connect_timeout_ms;
    transport = *create(fabric, test::cpus_of_this_process(), nullptr, source);
  }

  std::shared_ptr<MemoryNics> source = std::make_shared<MemoryNics>();
  std::unique_ptr<link::Link> network;
  std::unique_ptr<Transport> transport;
};

constexpr IpAddress kRouter{0xfe80ULL << 48, 0xa};
constexpr IpAddress kPrefix{0x2001'0db8'0000'0001ULL, 0};

TxFrame advertisement(std::initializer_list<PrefixOption> prefixes = {}) {
  return frame_of(router_advertisement(prefixes), kRouter, {{2, 0, 0, 0, 0, 0xa}});
}

TEST(AwaitRouter, AJobBeginsWithTheAdvertisement) {
  RoutedHost host(20'000);
  const LogCapture log;
  std::thread router([&] {
    std::this_thread::sleep_for(100ms);
    const TxFrame frame = advertisement();
    host.network->transmit({&frame, 1});
  });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(host.transport->listen(0, {}));
  EXPECT_GE(std::chrono::steady_clock::now() - began, 100ms);
  router.join();
  EXPECT_TRUE(log.warnings().empty());
}

TEST(AwaitRouter, WithoutARouterTheFailureNamesTheNicAndTheKey) {
  RoutedHost host(50);
  const LogCapture log;
  const auto listener = host.transport->listen(0, {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::kNoRoute);
  EXPECT_THAT(
      log.warnings(),
      testing::Contains(testing::StartsWith(
          "mem0: no router has advertised itself within 50 ms (tcp.connect_timeout_ms), and "
          "gateway = \"auto\" needs one: write the router's address as gateway in "
          "test.conf")));
}

TEST(AwaitAddress, AHandleNamesTheAdvertisedAddress) {
  RoutedHost host(20'000, /*finds_address=*/true);
  const LogCapture log;
  std::thread router([&] {
    std::this_thread::sleep_for(100ms);
    const TxFrame frame = advertisement({{.prefix = kPrefix}});
    host.network->transmit({&frame, 1});
  });
  const auto listener = host.transport->listen(0, {});
  router.join();
  ASSERT_TRUE(listener);
  const auto at = parse_listen_address((*listener)->handle().bytes);
  ASSERT_TRUE(at);
  EXPECT_EQ(to_string(at->endpoint.address), "2001:db8:0:1:0:ff:fe00:1");
  EXPECT_TRUE(log.warnings().empty());
  EXPECT_THAT(log.infos(), testing::Contains(testing::HasSubstr(
                               "2001:db8:0:1:0:ff:fe00:1/64 (advertised by the router fe80::a)")));
}

TEST(AwaitAddress, WithoutAPrefixTheFailureNamesTheNicAndTheKey) {
  RoutedHost host(50, /*finds_address=*/true);
  const LogCapture log;
  const TxFrame frame = advertisement();
  host.network->transmit({&frame, 1});
  const auto listener = host.transport->listen(0, {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::kNoRoute);
  EXPECT_THAT(log.warnings(),
              testing::Contains(testing::AllOf(
                  testing::StartsWith("mem0: no router has advertised a prefix for addresses "
                                      "within 50 ms (tcp.connect_timeout_ms), and address = "
                                      "\"auto\" needs one: "),
                  testing::HasSubstr("write the NIC's address as address in test.conf"))));
}

TEST(AwaitAddress, OffTheLinkAGatewayIsNeeded) {
  RoutedHost host(5'000, /*finds_address=*/true);
  const LogCapture log;
  const TxFrame frame = advertisement({{.prefix = kPrefix, .flags = kAutonomousFlag}});
  host.network->transmit({&frame, 1});
  EXPECT_FALSE(host.transport->listen(0, {}));
  EXPECT_THAT(log.warnings(),
              testing::Contains(testing::HasSubstr("write gateway = \"auto\" in test.conf")));
}

}  // namespace
}  // namespace ztcp::ustack
