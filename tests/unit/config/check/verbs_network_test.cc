// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The network of an RDMA device: GIDs, partition keys, MTU, speeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "tests/unit/config/check/verbs_host.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(CheckVerbs, AMissingGidIsAWarning) {
  fabric_.nics[0].gid_index = 7;
  EXPECT_THAT(warning("rdma_gid").what,
              HasSubstr("gid_index = 7 in the config, but port 1 of mlx5_0 has no such GID now"));
  fabric_.nics[0].gid_index = -1;
  tree_.remove("sys/class/infiniband/mlx5_0/ports/1/gids");
  tree_.add_folder("sys/bus/pci/devices/0000:1b:00.0/net/eth1");
  EXPECT_EQ(warning("rdma_gid").mend, "sudo ip address add ADDRESS/LENGTH dev eth1");
}

TEST_F(CheckVerbs, AnUnreachableGidIsReportedWithABetterOne) {
  fabric_.nics[0].gid_index = 1;
  EXPECT_THAT(warning("rdma_gid").what, HasSubstr("GID 1 10.0.0.5 (RoCE v1) is RoCE v1"));
  EXPECT_EQ(warning("rdma_gid").mend, "write gid_index = 2 into /etc/ztcp.conf");
  fabric_.nics[0].gid_index = 0;
  EXPECT_THAT(warning("rdma_gid").what, HasSubstr("GID 0 fe80::1 (RoCE v2) is link-local"));
}

TEST_F(CheckVerbs, AGidOfAnotherSubnetIsReportedWithTheRightOne) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  tree_.add_file(port + "gids/2", "0000:0000:0000:0000:0000:ffff:c0a8:0105\n");
  tree_.add_file(port + "gids/3", mapped("0005") + "\n");
  tree_.add_file(port + "gid_attrs/types/3", "RoCE v2\n");
  addresses_.push_back(
      {.interface = "eth1", .index = 3, .prefix = *parse_ip_prefix("192.168.1.5/24")});
  EXPECT_EQ(good("rdma_gid"), "GID 3 10.0.0.5 (RoCE v2), chosen by itself");
  fabric_.nics[0].gid_index = 2;
  const Problem said = warning("rdma_gid");
  EXPECT_THAT(said.what, HasSubstr("GID 2 192.168.1.5 (RoCE v2) is in another subnet than "
                                   "address = \"10.0.0.5/24\""));
  EXPECT_EQ(said.mend, "write gid_index = 3 into /etc/ztcp.conf");
}

TEST_F(CheckVerbs, AGidOfAnotherNetworkNamespaceIsAWarning) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  tree_.add_file(port + "gids/3", mapped("0007") + "\n");
  tree_.add_file(port + "gid_attrs/types/3", "");
  fabric_.nics[0].gid_index = 3;
  const Problem said = warning("rdma_gid");
  EXPECT_THAT(said.what, HasSubstr("GID 3 10.0.0.7 (of unknown type): the kernel hides its type"));
  EXPECT_EQ(said.mend, "remove gid_index from /etc/ztcp.conf, and one is chosen");
}

TEST_F(CheckVerbs, AGidWithARemovedAddressIsAWarning) {
  addresses_[0].prefix = *parse_ip_prefix("10.0.0.6/24");
  const Problem said = warning("rdma_gid");
  EXPECT_THAT(said.what, HasSubstr("is no longer an address of eth1"));
  EXPECT_EQ(said.mend, "sudo ip address add 10.0.0.5/24 dev eth1");
  fabric_.nics[0].address = *parse_ip_prefix("10.1.0.5/24");
  EXPECT_EQ(warning("rdma_gid").mend, "sudo ip address add 10.0.0.5/LENGTH dev eth1");
}

TEST_F(CheckVerbs, AMissingPartitionKeyIsAWarning) {
  const std::string keys = "sys/class/infiniband/mlx5_0/ports/1/pkeys/";
  tree_.add_file(keys + "0", "0xffff\n");
  tree_.add_file(keys + "1", "0x0000\n");
  fabric_.nics[0].pkey_index = 0;
  EXPECT_EQ(good("rdma_pkey"), "partition key 0 is 0xffff");
  for (const int index : {1, 7}) {
    fabric_.nics[0].pkey_index = index;
    EXPECT_THAT(warning("rdma_pkey").what, HasSubstr("has no such partition key"));
  }
}

TEST_F(CheckVerbs, AnMtuBelowOthersIsAWarning) {
  tree_.add_file("sys/class/net/eth1/mtu", "1500\n");
  EXPECT_THAT(good("rdma_mtu"), HasSubstr("carries 1024 bytes; it would carry 4096 with an MTU of "
                                          "4200 or more, if the network supports that"));
  tree_.add(device("mlx5_1", "eth2", mapped("0006"), 9000));
  fabric_.nics.push_back(nic("ztcp1", "mlx5_1", "10.0.0.6/24"));
  const Problem said = warning("rdma_mtu", "ztcp0");
  EXPECT_THAT(said.what, HasSubstr("carries 1024 bytes; eth2 has 9000, for 4096"));
  EXPECT_EQ(said.mend, "sudo ip link set dev eth1 mtu 9000, where the network carries it");
}

TEST_F(CheckVerbs, UnequalSpeedsAreAWarning) {
  tree_.add(device("mlx5_1", "eth2", mapped("0006"), 9000));
  fabric_.nics.push_back(nic("ztcp1", "mlx5_1", "10.0.0.6/24"));
  for (const Check& check : run_checks(fabric_, machine_, {}, {}, addresses_))
    EXPECT_NE(check.name, "speed") << "they are equal";
  fabric_.nics[1].speed_mbps = 25000;
  EXPECT_THAT(warning("speed").what, HasSubstr("(ztcp0 100000, ztcp1 25000 Mb/s)"));
  EXPECT_THAT(warning("speed").mend, StartsWith("sudo ztcp_setup --speed 25000"));
}

TEST_F(CheckVerbs, AVlanWithAnMtuBelowItsParentsIsAWarning) {
  tree_.add_file("sys/class/net/eth1/mtu", "1500\n");
  tree_.add_file("sys/class/net/eth0/mtu", "9000\n");
  tree_.add_file("sys/class/net/eth1/lower_eth0", "");
  EXPECT_THAT(warning("rdma_mtu").what, HasSubstr("eth0 has 9000"));
}

}  // namespace
}  // namespace ztcp::config
