// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The rules that a NIC of the mlx5 driver gets, recorded in place of DPDK's functions, and the
// order in which a port is isolated, started and given them.
#include "transport/link/mlx5/flow_steering.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <endian.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "tests/support/log_capture.h"
#include "tests/unit/link/port_fixture.h"
#include "transport/link/mlx5/driver.h"
#include "transport/link/mlx5_link.h"

namespace ztcp::link {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Rule {
  bool is_ingress = false;
  std::vector<std::byte> address;  // The destination's, in the packet's order.
  std::uint16_t port = 0;
  std::uint16_t mask = 0;
  std::vector<std::uint16_t> queues;
  std::uint64_t spread_by = 0;
};

// A NIC that records its requests.
struct FakeNic {
  std::vector<std::string> calls;  // "isolate", "rule".
  std::uint16_t queues_when_isolated = 0;
  std::vector<Rule> rules;
  bool refuses_isolation = false;
  std::size_t room = 1000;  // For rules.
};
FakeNic g_nic;

int isolate_fake(std::uint16_t port, int on, rte_flow_error* error) {
  rte_eth_dev_info info{};
  EXPECT_EQ(rte_eth_dev_info_get(port, &info), 0);
  EXPECT_EQ(on, 1);
  g_nic.calls.emplace_back("isolate");
  g_nic.queues_when_isolated = info.nb_rx_queues;
  if (!g_nic.refuses_isolation) return 0;
  error->message = "no such right";
  rte_errno = EPERM;
  return -EPERM;
}

rte_flow* create_fake(std::uint16_t port, const rte_flow_attr* attributes,
                      const rte_flow_item pattern[], const rte_flow_action actions[],
                      rte_flow_error* error) {
  static_cast<void>(port);
  if (g_nic.rules.size() == g_nic.room) {
    error->message = "no room for rules";
    rte_errno = ENOSPC;
    return nullptr;
  }
  g_nic.calls.emplace_back("rule");
  Rule rule;
  rule.is_ingress = attributes->ingress == 1 && attributes->egress == 0;
  EXPECT_EQ(pattern[0].type, RTE_FLOW_ITEM_TYPE_ETH);
  EXPECT_EQ(pattern[0].spec, nullptr) << "any MAC address";
  std::vector<std::byte> mask;
  const auto take = [&](const auto& spec, const auto& of_mask) {
    const auto* const at = reinterpret_cast<const std::byte*>(&spec);
    rule.address.assign(at, at + sizeof(spec));
    const auto* const mask_at = reinterpret_cast<const std::byte*>(&of_mask);
    mask.assign(mask_at, mask_at + sizeof(of_mask));
  };
  if (pattern[1].type == RTE_FLOW_ITEM_TYPE_IPV4)
    take(static_cast<const rte_flow_item_ipv4*>(pattern[1].spec)->hdr.dst_addr,
         static_cast<const rte_flow_item_ipv4*>(pattern[1].mask)->hdr.dst_addr);
  else if (pattern[1].type == RTE_FLOW_ITEM_TYPE_IPV6)
    take(static_cast<const rte_flow_item_ipv6*>(pattern[1].spec)->hdr.dst_addr,
         static_cast<const rte_flow_item_ipv6*>(pattern[1].mask)->hdr.dst_addr);
  EXPECT_TRUE(std::all_of(mask.begin(), mask.end(), [](auto b) { return b == std::byte{0xff}; }));
  EXPECT_EQ(pattern[2].type, RTE_FLOW_ITEM_TYPE_TCP);
  rule.port = be16toh(static_cast<const rte_flow_item_tcp*>(pattern[2].spec)->hdr.dst_port);
  rule.mask = be16toh(static_cast<const rte_flow_item_tcp*>(pattern[2].mask)->hdr.dst_port);
  EXPECT_EQ(pattern[3].type, RTE_FLOW_ITEM_TYPE_END);
  if (actions[0].type == RTE_FLOW_ACTION_TYPE_RSS) {
    const auto* const rss = static_cast<const rte_flow_action_rss*>(actions[0].conf);
    rule.queues.assign(rss->queue, rss->queue + rss->queue_num);
    rule.spread_by = rss->types;
  } else if (actions[0].type == RTE_FLOW_ACTION_TYPE_QUEUE) {
    rule.queues = {static_cast<const rte_flow_action_queue*>(actions[0].conf)->index};
  }
  EXPECT_EQ(actions[1].type, RTE_FLOW_ACTION_TYPE_END);
  g_nic.rules.push_back(std::move(rule));
  return reinterpret_cast<rte_flow*>(&g_nic);
}

xdp::Steering steering(const char* address = "10.0.0.5") {
  return {
      .address = *parse_ip(address), .listen_port = 7471, .first_port = 61000, .last_port = 65535};
}

bool takes(const Rule& rule, std::uint16_t port) { return (port & rule.mask) == rule.port; }

class Mlx5Steering : public PortLinkTest {
 protected:
  void SetUp() override { g_nic = {}; }
  static mlx5::FlowPort port() {
    return {.id = 0, .name = "nic", .calls = {.isolate = isolate_fake, .create = create_fake}};
  }
  static PortConfig steered(std::uint16_t queues) {
    PortConfig out = config();
    out.queues = queues;
    out.steering = steering();
    out.flow_calls = port().calls;
    return out;
  }
};

TEST_F(Mlx5Steering, RulesTakeTheListeningPortAndTheSourcePortsAndNoOther) {
  ASSERT_TRUE(mlx5::steer(port(), steering(), 1));
  for (std::uint32_t at = 0; at <= UINT16_MAX; ++at) {
    const bool ours = at == 7471 || at >= 61000;
    const auto count = std::count_if(g_nic.rules.begin(), g_nic.rules.end(), [&](const Rule& rule) {
      return takes(rule, static_cast<std::uint16_t>(at));
    });
    ASSERT_EQ(count, ours ? 1 : 0) << "port " << at;
  }
  for (const Rule& rule : g_nic.rules) {
    EXPECT_TRUE(rule.is_ingress);
    EXPECT_THAT(rule.address, ElementsAre(std::byte{10}, std::byte{0}, std::byte{0}, std::byte{5}));
    EXPECT_THAT(rule.queues, ElementsAre(0));
  }
}

TEST_F(Mlx5Steering, SeveralQueuesShareTheSegmentsByTheirAddressesAndPorts) {
  ASSERT_TRUE(mlx5::steer(port(), steering("2001:db8::5"), 4));
  for (const Rule& rule : g_nic.rules) {
    EXPECT_EQ(rule.address.size(), 16U);
    EXPECT_EQ(rule.address.front(), std::byte{0x20});
    EXPECT_EQ(rule.address.back(), std::byte{5});
    EXPECT_THAT(rule.queues, ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(rule.spread_by, std::uint64_t{RTE_ETH_RSS_NONFRAG_IPV6_TCP});
  }
}

TEST_F(Mlx5Steering, APortIsIsolatedBeforeItIsConfiguredAndSteeredOnceItRuns) {
  open(steered(2));
  ASSERT_GE(g_nic.calls.size(), 2U);
  EXPECT_EQ(g_nic.calls.front(), "isolate");
  EXPECT_NE(g_nic.queues_when_isolated, 2) << "the port was configured before";
  EXPECT_EQ(std::count(g_nic.calls.begin(), g_nic.calls.end(), "rule"), 7);
  EXPECT_THAT(g_nic.rules.front().queues, ElementsAre(0, 1));
  EXPECT_EQ(link_->capabilities().spread, nullptr) << "the rules spread, not the port";
  close();
}

TEST_F(Mlx5Steering, ANicThatCannotBeIsolatedIsNotConfigured) {
  g_nic.refuses_isolation = true;
  const ztcp::test::LogCapture log;
  const auto refused = Port::open(steered(1));
  ASSERT_FALSE(refused);
  EXPECT_STREQ(refused.error().where, "rte_flow_isolate");
  EXPECT_EQ(refused.error().sys_errno, EPERM);
  EXPECT_THAT(log.warned(), HasSubstr("rte_flow_isolate failed: no such right"));
  EXPECT_THAT(log.warned(), HasSubstr("it needs CAP_NET_RAW"));
  EXPECT_THAT(g_nic.rules, IsEmpty());
  EXPECT_FALSE(port_exists());
}

TEST_F(Mlx5Steering, ANicWithoutRoomForARuleDoesNotStart) {
  g_nic.room = 3;
  const ztcp::test::LogCapture log;
  auto port = Port::open(steered(1));
  ASSERT_TRUE(port);
  const Status started = port->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().sys_errno, ENOSPC);
  EXPECT_THAT(log.warned(), HasSubstr("rte_flow_create failed: no room for rules"));
}

// --- The driver ----------------------------------------------------------------------------------

TEST_F(Mlx5Steering, TheDriverRegistersOnceItIsAskedForAndLeavesTheEnvironmentAlone) {
  if (const auto started = mlx5::start_driver(); !started) GTEST_SKIP() << started.error();
  EXPECT_TRUE(mlx5::start_driver()) << "the first result";
  for (const char* const name :
       {"RDMAV_HUGEPAGES_SAFE", "MLX5_DEVICE_FATAL_CLEANUP", "MLX5_SHUT_UP_BF"})
    EXPECT_EQ(std::getenv(name), nullptr) << name;
}

TEST_F(Mlx5Steering, AnInterfaceThatIsNoConnectXIsRefused) {
  const auto refusal = [](const char* interface) {
    const ztcp::test::LogCapture log;
    Mlx5Config config;
    config.interface = interface;
    config.steering = steering();
    EXPECT_FALSE(open_mlx5(config));
    return log.warned();
  };
  EXPECT_THAT(refusal("ztcp-nobody"), HasSubstr("mlx5 ztcp-nobody: no such interface"));
  EXPECT_THAT(refusal("lo"), HasSubstr("mlx5 lo: it "));
}

}  // namespace
}  // namespace ztcp::link
