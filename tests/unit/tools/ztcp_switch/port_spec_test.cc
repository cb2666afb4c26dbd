// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tools/ztcp_switch/options.h"

namespace ztcp::fabric {
namespace {

using namespace std::chrono_literals;

PortOptions parsed(std::string_view text, const PortSettings& defaults = {}) {
  auto result = parse_port(text, defaults);
  if (!result) {
    ADD_FAILURE() << result.error();
    return {};
  }
  return std::move(*result);
}

TEST(PortSpec, ReadsTargetsAndEveryKey) {
  const PortOptions port = parsed(
      "memif:/run/a.sock,id=3,mtu=9000,loss=1%,duplicate=2%,reorder=3%,corrupt=4%,delay=5ms,"
      "jitter=6us,reorder-delay=7ms,rate=8Gbit,queue=9K,ecn-mark=10K,paths=4,path-skew=13us,in."
      "loss=11%,in.delay=12ms");
  EXPECT_EQ(port.kind, PortOptions::Kind::kMemif);
  EXPECT_EQ(port.target, "/run/a.sock");
  EXPECT_EQ(port.memif_id, 3U);
  EXPECT_EQ(port.mtu_bytes, 9000);
  const link::Impairment& out = port.settings.to_peer;
  EXPECT_DOUBLE_EQ(out.loss, 0.01);
  EXPECT_DOUBLE_EQ(out.duplicate, 0.02);
  EXPECT_DOUBLE_EQ(out.reorder, 0.03);
  EXPECT_DOUBLE_EQ(out.corrupt, 0.04);
  EXPECT_EQ(out.delay, Duration(5ms));
  EXPECT_EQ(out.jitter, Duration(6us));
  EXPECT_EQ(out.reorder_delay, Duration(7ms));
  EXPECT_EQ(out.rate_bits_per_second, 8'000'000'000U);
  EXPECT_EQ(out.queue_limit_bytes, 9U * 1024);
  EXPECT_EQ(out.ecn_threshold_bytes, 10U * 1024);
  EXPECT_EQ(out.paths, 4U);
  EXPECT_EQ(out.path_skew, Duration(13us));
  EXPECT_DOUBLE_EQ(port.settings.from_peer.loss, 0.11);
  EXPECT_EQ(port.settings.from_peer.delay, Duration(12ms));
}

TEST(PortSpec, StartsFromTheGlobalImpairments) {
  PortSettings defaults;
  defaults.to_peer.loss = 0.01;
  defaults.to_peer.delay = 1ms;
  const PortOptions port = parsed("tap:zt0,loss=0", defaults);
  EXPECT_EQ(port.kind, PortOptions::Kind::kTap);
  EXPECT_EQ(port.target, "zt0");
  EXPECT_EQ(port.settings.to_peer.loss, 0);
  EXPECT_EQ(port.settings.to_peer.delay, Duration(1ms));
}

TEST(PortSpec, RefusesByName) {
  for (const char* bad :
       {"", "memif", "memif:", "tap:", "pci:0000:00:01.0", "memif:/x,loss=3", "memif:/x,loss",
        "memif:/x,delay=5", "memif:/x,mtu=100", "memif:/x,mtu=70000", "memif:/x,id=a",
        "memif:/x,nonsense=1", "memif:/x,in.=1%", "memif:/x,queue=8G", "memif:/x,paths=0",
        "memif:/x,paths=x"}) {
    const auto result = parse_port(bad, {});
    ASSERT_FALSE(result) << bad;
    EXPECT_NE(result.error().find(bad), std::string::npos) << result.error();
  }
}

TEST(PortSpec, AdjustsAPortOfTheConfig) {
  std::vector<PortOptions> ports(2);
  ports[0].settings.name = "ztcp0";
  ports[1].settings.name = "ztcp1";
  EXPECT_TRUE(adjust_port("nic:ztcp1,loss=5%,in.delay=1ms", ports));
  EXPECT_EQ(ports[0].settings.to_peer.loss, 0);
  EXPECT_DOUBLE_EQ(ports[1].settings.to_peer.loss, 0.05);
  EXPECT_EQ(ports[1].settings.from_peer.delay, Duration(1ms));
  const auto unknown = adjust_port("nic:ztcp7,loss=5%", ports);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error(), "--port nic:ztcp7,loss=5%: the config has no such memif NIC");
}

}  // namespace
}  // namespace ztcp::fabric
