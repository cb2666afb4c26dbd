// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC with `gateway = "auto"`: a job begins when a router has advertised itself, and fails by
// name where none does.
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cpu_share.h"
#include "tests/support/log_capture.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/router_advertisement.h"

namespace ztcp::ustack {
namespace {

using namespace test;
using namespace std::chrono_literals;

struct RoutedHost {
  explicit RoutedHost(std::uint32_t connect_timeout_ms) {
    auto links = link::make_memory_links({.mtu_bytes = 9000});
    source->add("mem0", std::move(links.first));
    network = std::move(links.second);
    config::Fabric fabric = one_nic_fabric(0, {.address = "2001:db8::1/64"});
    fabric.nics[0].gateway = config::kAutoGateway;
    fabric.tcp.connect_timeout_ms = connect_timeout_ms;
    transport = *create(fabric, test::cpus_of_this_process(), nullptr, source);
  }

  std::shared_ptr<MemoryNics> source = std::make_shared<MemoryNics>();
  std::unique_ptr<link::Link> network;
  std::unique_ptr<Transport> transport;
};

TxFrame advertisement() {
  constexpr IpAddress kRouter{0xfe80ULL << 48, 0xa};
  TxFrame frame{};
  std::byte* const ip =
      frame.header.data() + wire::emit_ethernet({.destination = wire::group_mac(wire::kAllNodes),
                                                 .source = {{2, 0, 0, 0, 0, 0xa}},
                                                 .vlan_id = 0,
                                                 .type = wire::EtherType::kIpv6},
                                                frame.header.data());
  frame.l2_bytes = wire::kEthernetBytes;
  frame.l3_bytes = wire::kIpv6Bytes;
  wire::emit_ipv6({.source = kRouter,
                   .destination = wire::kAllNodes,
                   .protocol = wire::IpProtocol::kIcmpv6,
                   .hop_limit = 255,
                   .payload_bytes = wire::kRouterAdvertisementBytes},
                  ip);
  std::byte* const message = ip + wire::kIpv6Bytes;
  std::memset(message, 0, wire::kRouterAdvertisementBytes);
  wire::store_u8(message, 134);
  wire::store_be16(message + 6, 1800);
  wire::fill_icmpv6_checksum(kRouter, wire::kAllNodes, {message, wire::kRouterAdvertisementBytes});
  frame.header_bytes = wire::kEthernetBytes + wire::kIpv6Bytes + wire::kRouterAdvertisementBytes;
  return frame;
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

}  // namespace
}  // namespace ztcp::ustack
