// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;

config::Nic nic_on(const char* interface, const char* address) {
  config::Nic nic;
  nic.name = "ztcp1";
  nic.driver = config::NicDriver::kSocket;
  nic.interface = interface;
  nic.address = *parse_ip_prefix(address);
  return nic;
}

// The answer to "ip -json route get 192.0.2.1 from 10.2.0.5".
constexpr const char* kByEth0 =
    R"([{"dst":"192.0.2.1","from":"10.2.0.5","gateway":"10.0.0.1","dev":"eth0","uid":0,"flags":[]}])";

TEST(SourceRoutes, ANicWithoutItsOwnTableUsesAnotherInterface) {
  const config::Check check = judge_route(kByEth0, nic_on("eth2", "10.2.0.5/24"));
  EXPECT_EQ(check.name, "route");
  EXPECT_EQ(check.severity, config::Severity::kGood) << "its peers may all be in its network";
  EXPECT_EQ(check.problem.where, "ztcp1");
  EXPECT_THAT(check.problem.what,
              HasSubstr("peers outside 10.2.0.5/24 would be reached through eth0"));
  EXPECT_THAT(check.problem.what, HasSubstr("sudo ip rule add from 10.2.0.5 table 100"));
  EXPECT_THAT(judge_route(kByEth0, nic_on("eth2", "fd00::5/64")).problem.what,
              HasSubstr("sudo ip -6 rule add from fd00::5"));
}

TEST(SourceRoutes, ARouteThroughTheNicIsGood) {
  EXPECT_THAT(judge_route(kByEth0, nic_on("eth0:1", "10.0.0.5/24")).problem.what,
              HasSubstr("reached through eth0, too"));
}

TEST(SourceRoutes, WithoutAnotherRouteOnlyItsNetworkIsReached) {
  for (const char* answer : {"", "[]", "RTNETLINK answers: Network is unreachable", "[{}]", "[1]"})
    EXPECT_THAT(judge_route(answer, nic_on("eth2", "10.2.0.5/24")).problem.what,
                HasSubstr("its own network 10.2.0.5/24 only"));
}

// The address is outside every network of the host.
TEST(SourceRoutes, AsksForARouteToAnAddressOutsideAllNetworks) {
  test::FakeHost host;
  host.programs.insert("ip");
  host.state.links["eth2"].name = "eth2";
  host.state.links["eth2"].up = true;
  host.state.links["eth2"].addresses = {{"ip address add 192.0.2.5/24 dev eth2", "00", 0}};
  host.answers["ip -json route get 198.51.100.1 from 192.0.2.5"] = kByEth0;
  config::Fabric fabric;
  fabric.nics = {nic_on("eth2", "192.0.2.5/24"), nic_on("lo", "127.0.0.1/8"),
                 nic_on("eth2", "fe80::5/64")};
  const auto checks = check_source_routes(fabric, host);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_THAT(checks[0].problem.what, HasSubstr("through eth0, not through eth2"));
  host.programs.erase("ip");
  EXPECT_TRUE(check_source_routes(fabric, host).empty());
}

}  // namespace
}  // namespace ztcp::setup
