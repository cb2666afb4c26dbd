// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/instance_speed.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup {
namespace {

std::optional<InstanceSpeed> speed_of(const std::string& vendor, const std::string& product) {
  test::FakeHost host;
  host.state.values["/sys/class/dmi/id/sys_vendor"] = vendor;
  host.state.values["/sys/class/dmi/id/product_name"] = product;
  return instance_speed(host);
}

TEST(InstanceSpeed, TheInstancesSpeedIsSharedUpToThatOfOneNic) {
  const auto speed = speed_of("Amazon EC2", "p4d.24xlarge");
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->type, "p4d.24xlarge");
  EXPECT_EQ(speed->host_mbps, 400'000U);
  EXPECT_EQ(speed->share_mbps(1), 100'000U);
  EXPECT_EQ(speed->share_mbps(8), 50'000U);
}

TEST(InstanceSpeed, OneNicGetsWhatOneNetworkCardCarries) {
  EXPECT_EQ(speed_of("Amazon EC2", "g6e.48xlarge")->share_mbps(1), 100'000U);
  EXPECT_EQ(speed_of("Amazon EC2", "g6e.24xlarge")->share_mbps(4), 50'000U);
  EXPECT_EQ(speed_of("Amazon EC2", "g6e.16xlarge")->share_mbps(1), 35'000U);
}

TEST(InstanceSpeed, OtherMachinesHaveNone) {
  EXPECT_FALSE(speed_of("Amazon EC2", "m5.large"));
  EXPECT_FALSE(speed_of("Another", "p4d.24xlarge"));
  EXPECT_FALSE(speed_of("", ""));
}

}  // namespace
}  // namespace ztcp::setup
