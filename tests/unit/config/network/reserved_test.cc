// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/network/reserved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "config/topology/topology.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

Reserved reserved(const test::Tree& tree, const std::string& ssh = {}) {
  LiveMachine machine(tree.root());
  return reserved_interfaces(machine, tree.network(), ssh);
}

TEST(Reserved, NothingIsReservedWithoutAReason) {
  EXPECT_THAT(reserved(test::Tree("address if=eth0 ip=10.0.0.5/24\nroute if=eth0 to=10.0.0.0/24")),
              IsEmpty());
}

TEST(Reserved, TheBestDefaultRouteNeverYields) {
  const auto found = reserved(
      test::Tree("route if=eth0 via=10.0.0.1 metric=100\nroute if=eth1 via=10.1.0.1 metric=200\n"
                 "route if=eth2 via=10.2.0.1 table=10002"));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.at("eth0").why, "carries the default route");
  EXPECT_FALSE(found.at("eth0").yields);
  EXPECT_EQ(found.at("eth1").why, "carries a default route of table 254, metric 200");
  EXPECT_TRUE(found.at("eth1").yields);
  EXPECT_EQ(found.at("eth2").why, "carries a default route of table 10002, metric 0");
  EXPECT_TRUE(found.at("eth2").yields);
}

TEST(Reserved, TheOnlyDefaultRouteNeverYields) {
  const auto found = reserved(test::Tree("route if=eth2 via=10.2.0.1 table=10002"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found.at("eth2").yields);
}

TEST(Reserved, Ipv6HasItsOwnBestRoute) {
  const auto found =
      reserved(test::Tree("route if=eth0 via=10.0.0.1\nroute if=eth1 ipv6=1 metric=1024"));
  EXPECT_FALSE(found.at("eth0").yields);
  EXPECT_FALSE(found.at("eth1").yields);
}

TEST(Reserved, InterfacesBelowAVlanAreReservedWithIt) {
  EXPECT_THAT(reserved(test::Tree("vlan on=eth1 name=eth1.7 id=7 mtu=1500\n"
                                  "route if=eth1.7 via=10.0.0.1")),
              ElementsAre(Key("eth1"), Key("eth1.7")));
}

TEST(Reserved, ThisSshSessionsInterfaceIsReserved) {
  const test::Tree tree("address if=eth1 ip=10.0.0.5/24\naddress if=eth2 ip=10.1.0.5/24");
  const auto found = reserved(tree, "192.0.2.9 55555 10.1.0.5 22");
  ASSERT_THAT(found, ElementsAre(Key("eth2")));
  EXPECT_EQ(found.at("eth2").why, "carries this ssh session (10.1.0.5)");
  EXPECT_FALSE(found.at("eth2").yields);
}

// sudo drops the variable. 0100000A is 10.0.0.1 in memory order; port 0016 is 22, state 01 is
// established, 0A listens.
TEST(Reserved, InterfacesOfOtherSshSessionsAreReserved) {
  const test::Tree tree(
      "address if=eth1 ip=10.0.0.1/24\naddress if=eth2 ip=10.1.0.1/24\n"
      "file path=proc/net/tcp text=  sl  local_address rem_address   st\\n"
      "   0: 0100000A:0016 090200C0:D903 01 00000000:00000000\\n"
      "   1: 0100010A:0016 00000000:0000 0A 00000000:00000000\\n"
      "   2: 0100010A:1F90 090200C0:D904 01 00000000:00000000");
  const auto found = reserved(tree);
  ASSERT_THAT(found, ElementsAre(Key("eth1")));
  EXPECT_EQ(found.at("eth1").why, "carries an ssh session (10.0.0.1)");
}

TEST(Reserved, SshSessionsOnDualStackSocketsAreFound) {
  const test::Tree tree(
      "address if=eth1 ip=10.0.0.1/24\nfile path=proc/net/tcp6 text=  sl  local_address\\n"
      "   0: 0000000000000000FFFF00000100000A:0016 0000000000000000FFFF0000090200C0:D903 01 0:0");
  EXPECT_THAT(reserved(tree), ElementsAre(Key("eth1")));
}

TEST(Reserved, TheInterfaceToAFileServerIsReserved) {
  const test::Tree tree(
      "address if=eth1 ip=10.0.0.5/24\nroute if=eth1 to=10.0.0.0/24\n"
      "route if=eth2 to=10.0.0.0/8\n"
      "file path=proc/self/mountinfo text=22 1 0:50 / /home rw - nfs4 10.0.0.9:/home "
      "rw,vers=4.2,addr=10.0.0.9");
  const auto found = reserved(tree);
  ASSERT_THAT(found, ElementsAre(Key("eth1")));
  EXPECT_EQ(found.at("eth1").why, "leads to 10.0.0.9, which serves /home");
}

TEST(Reserved, FileServersNamedInTheSourceAreFound) {
  const test::Tree tree(
      "address if=eth1 ip=10.1.0.5/24\nroute if=eth1 to=10.1.0.0/24\n"
      "address if=eth2 ip=10.2.0.5/24\nroute if=eth2 to=10.2.0.0/24\n"
      "address if=eth3 ip=10.3.0.5/24\nroute if=eth3 to=10.3.0.0/24\n"
      "file path=proc/self/mountinfo text="
      "22 1 0:50 / /scratch rw - lustre 10.1.0.9@tcp:10.1.0.10@tcp:/scratch rw,flock\\n"
      "23 1 0:51 / /data rw - ceph 10.2.0.7:6789,10.2.0.8:6789:/ rw,name=x\\n"
      "24 1 8:1 / / rw - ext4 /dev/10.3.0.1 rw");
  const auto found = reserved(tree);
  ASSERT_THAT(found, ElementsAre(Key("eth1"), Key("eth2")));
  EXPECT_EQ(found.at("eth1").why, "leads to 10.1.0.9, which serves /scratch");
}

// --- Effect on the topology ----------------------------------------------------------------------

constexpr const char* kTwo =
    "node id=0 cpus=0-1 memory_mib=1024\n"
    "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=ena\n"
    "net path=pci0000:00/0000:00:05.0 name=ens5 mac=02:00:00:00:00:05 mtu=9001 speed=-1\n"
    "pci path=pci0000:00/0000:00:06.0 id=1d0f:ec20 class=020000 numa=0 driver=ena\n"
    "net path=pci0000:00/0000:00:06.0 name=ens6 mac=02:00:00:00:00:06 mtu=9001 speed=-1\n"
    "route if=ens5 via=10.0.0.1 metric=100\nroute if=ens6 via=10.0.0.1 metric=200\n";

std::vector<std::string> unfit(const test::Tree& tree, const Selection& selection) {
  LiveMachine machine(tree.root());
  const auto topology = detect(machine, tree.root(), tree.network(), selection);
  std::vector<std::string> reasons;
  if (topology)
    for (const HostNic& nic : topology->nics) reasons.push_back(nic.unfit);
  return reasons;
}

TEST(Selection, TakeAppliesToInterfacesThatYield) {
  const test::Tree tree(kTwo);
  EXPECT_THAT(unfit(tree, {}),
              ElementsAre("carries the default route", HasSubstr("--take ens6 takes it")));
  Selection selection;
  selection.take = {"ens5", "0000:00:06.0"};
  EXPECT_THAT(unfit(tree, selection), ElementsAre("carries the default route", ""));
  selection.keep = {"ens6"};
  EXPECT_THAT(unfit(tree, selection),
              ElementsAre("carries the default route", "was named by --keep"));
}

TEST(Selection, InterfacesOfOtherNamespacesAreUnfit) {
  const test::Tree tree(kTwo);
  LiveMachine machine(tree.root());
  const auto topology = detect(machine, tree.root(), {}, {});
  ASSERT_TRUE(topology);
  for (const HostNic& nic : topology->nics)
    EXPECT_EQ(nic.unfit, "belongs to another network namespace");
}

TEST(Selection, UpperInterfacesAndVirtualFunctionsMakeANicUnfit) {
  test::Tree tree(kTwo);
  Selection selection;
  selection.take = {"ens6"};
  tree.add("link path=sys/class/net/ens6/upper_macvlan0 to=../macvlan0");
  EXPECT_EQ(unfit(tree, selection)[1], "carries macvlan0");
  tree.remove("sys/class/net/ens6/upper_macvlan0");
  tree.add("file path=sys/devices/pci0000:00/0000:00:06.0/sriov_numvfs text=4");
  EXPECT_EQ(unfit(tree, selection)[1], "has 4 virtual functions, which would lose their link");
}

}  // namespace
}  // namespace ztcp::config
