// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Records and restores real interfaces, in a network namespace that ends with the test. A veth pair
// replaces a NIC: it is deleted, with its state in the kernel, and created anew.
#include "tests/unit/tools/ztcp_setup/live/live_network.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::setup {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;

TEST_F(LiveNetwork, AddressesRoutesAndSizesComeBack) {
  ip("link set dev nic0 mtu 8500 txqueuelen 500 alias rail up");
  ip("address add 10.77.1.5/24 brd + dev nic0");
  ip("address add 10.77.1.6/24 dev nic0 label nic0:1");
  ip("address add 10.5.5.5 peer 10.5.5.6/32 dev nic0 scope link");
  ip("address add 10.8.8.8/16 dev nic0 noprefixroute");
  ip("address add fd00:1::5/64 dev nic0 nodad");
  ip("neighbour add 10.77.1.9 lladdr 02:00:00:00:00:99 nud permanent dev nic0");
  ip("route add 10.99.0.0/16 via 10.77.1.1 dev nic0 src 10.77.1.6 metric 77 mtu lock 1400");
  ip("route add 10.98.0.0/16 via 10.77.1.1 dev nic0 proto static table 1000");
  ip("route add 203.0.113.1 via 192.0.2.1 dev nic0 onlink");
  ip("-6 route add fd00:9::/64 via fd00:1::1 dev nic0 metric 50");
  ip("route add 10.97.0.0/16 dev nic0 scope link proto dhcp");
  const InterfaceState before = record("nic0");
  EXPECT_THAT(commands(before.addresses),
              Contains("ip address add 10.8.8.8/16 noprefixroute dev nic0"));
  EXPECT_THAT(
      commands(before.routes),
      Contains("ip route add 10.99.0.0/16 via 10.77.1.1 dev nic0 proto 3 src 10.77.1.6 metric 77"));

  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  const InterfaceState after = record("nic0");
  EXPECT_EQ(after.mtu_bytes, 8500U);
  EXPECT_EQ(after.queue_length, 500U);
  EXPECT_EQ(after.alias, "rail");
  EXPECT_EQ(after.mac, before.mac);
  EXPECT_TRUE(after.up);
  EXPECT_EQ(commands(after.addresses), commands(before.addresses));
  EXPECT_EQ(commands(after.neighbours), commands(before.neighbours));
  auto routes = commands(after.routes);
  auto wanted = commands(before.routes);
  std::sort(routes.begin(), routes.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(routes, wanted);
  // The route's own MTU, which the commands above do not include.
  EXPECT_THAT(shown("route show 10.99.0.0/16"), HasSubstr("mtu lock 1400"));
}

TEST_F(LiveNetwork, NexthopObjectsComeBackWithTheRoutesThatReferToThem) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("address add fd00:1::5/64 dev nic0 nodad");
  ip("nexthop add id 9 via 10.77.1.1 dev nic0 proto static");
  ip("nexthop add id 12 via 192.0.2.1 dev nic0 onlink");
  ip("-6 nexthop add id 11 via fd00:1::1 dev nic0");
  ip("nexthop add id 8 group 9/12,3");  // Its number is smaller than its members'.
  ip("route add 10.99.0.0/16 nhid 9 metric 77");
  ip("route add 10.98.0.0/16 nhid 8");
  ip("-6 route add fd00:9::/64 nhid 11");
  ip("route add 10.97.0.0/16 nhid 12");
  const std::string nexthops = shown("nexthop");
  const std::string routes = shown("route") + shown("-6 route");
  const InterfaceState before = record("nic0");
  EXPECT_THAT(commands(before.routes),
              IsSupersetOf({"ip nexthop add id 9 via 10.77.1.1 dev nic0 proto 4",
                            "ip nexthop replace id 8 group 9/12,3 proto 0",
                            "ip route add 10.99.0.0/16 nhid 9 proto 3 metric 77"}));

  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(shown("nexthop"), nexthops);
  EXPECT_EQ(shown("route") + shown("-6 route"), routes);
  EXPECT_EQ(commands(record("nic0").routes), commands(before.routes));
}

// Undo removes two NICs one after the other and restores them in reverse order.
TEST_F(LiveNetwork, ANexthopGroupOverTwoNicsIsRestored) {
  for (const char* words :
       {"link add nic1 type veth peer name wire1", "link set wire1 up", "link set nic0 up",
        "link set nic1 up", "address add 10.77.1.5/24 dev nic0",
        "address add 10.78.1.5/24 dev nic1", "nexthop add id 7 via 10.77.1.1 dev nic0",
        "nexthop add id 8 via 10.78.1.1 dev nic1", "nexthop add id 20 group 7/8",
        "nexthop add id 21 group 7/8 type resilient buckets 8 idle_timer 60",
        "route add 10.99.0.0/16 nhid 20", "route add 10.98.0.0/16 nhid 21"})
    ip(words);
  const std::string routes = shown("route");
  const InterfaceState first = record("nic0");
  ip("link set nic0 down");
  EXPECT_THAT(shown("nexthop"), HasSubstr("id 20 group 8 ")) << "the kernel keeps what is left";
  const InterfaceState second = record("nic1");
  ip("link set nic1 down");
  EXPECT_THAT(shown("nexthop"), IsEmpty());

  ip("link set nic1 up");
  // nic1 represents another function's interface: it is restored item by item.
  for (const NetworkItem& item : second.routes) EXPECT_TRUE(host_.add_item("nic1", item));
  const Reverted whole = lose_and_put_back(first);
  EXPECT_THAT(whole.faults, IsEmpty()) << words(whole.faults);
  EXPECT_THAT(shown("nexthop"), HasSubstr("id 20 group 7/8 "));
  EXPECT_THAT(shown("nexthop"),
              HasSubstr("id 21 group 7/8 type resilient buckets 8 idle_timer 60"));
  EXPECT_EQ(shown("route"), routes);
}

TEST_F(LiveNetwork, RoutesByNexthopObjectsAreSeenWhereTheKernelHidesTheirInterface) {
  ASSERT_TRUE(
      host_.write_value("/proc/sys/net/ipv4/nexthop_compat_mode", "0", std::chrono::seconds{10}));
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("nexthop add id 7 via 10.77.1.1 dev nic0");
  ip("route add 10.99.0.0/16 nhid 7");
  const InterfaceState before = record("nic0");
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(shown("route"), HasSubstr("10.99.0.0/16 nhid 7"));
}

TEST_F(LiveNetwork, InterfacesOnTopComeBackWithTheirAddresses) {
  ip("link set nic0 up");
  ip("link add link nic0 name top0 address 02:00:00:00:00:33 type macvlan mode private");
  ip("link set dev top0 mtu 1300 up");
  ip("address add 10.78.1.5/24 dev top0");
  ip("route add 10.96.0.0/16 via 10.78.1.1 dev top0");
  const InterfaceState before = record("nic0");
  ASSERT_THAT(before.children, SizeIs(1));
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  const InterfaceState after = record("nic0");
  ASSERT_THAT(after.children, SizeIs(1));
  const InterfaceState& top = after.children.front();
  EXPECT_EQ(top.kind, "macvlan");
  EXPECT_EQ(top.info, before.children.front().info);  // Private, not the default.
  EXPECT_EQ(top.mac, "02:00:00:00:00:33");
  EXPECT_EQ(top.mtu_bytes, 1300U);
  EXPECT_EQ(commands(top.addresses), commands(before.children.front().addresses));
  EXPECT_EQ(commands(top.routes), commands(before.children.front().routes));
}

TEST_F(LiveNetwork, AnotherNicsInterfaceOfTheSameNameIsNotChanged) {
  ip("link set nic0 up");
  ip("link add link nic0 name top0 type macvlan mode private");
  ip("link set top0 up");
  ip("address add 10.78.1.5/24 dev top0");
  const InterfaceState before = record("nic0");
  ip("link delete nic0");
  make_nic();
  ip("link add nic1 type veth peer name wire1");
  ip("link add link nic1 name top0 type macvlan mode private");
  const InterfaceState stranger = record("top0");
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(words(restored.faults), HasSubstr("top0: is another interface than the macvlan"));
  EXPECT_EQ(record("top0"), stranger);
}

TEST_F(LiveNetwork, ABridgePortRejoinsItsBridge) {
  ip("link add br0 type bridge");
  ip("link set dev nic0 master br0 up");
  const InterfaceState before = record("nic0");
  EXPECT_EQ(before.master, "br0");
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(record("nic0").master, "br0");
}

TEST_F(LiveNetwork, SysctlsComeBack) {
  ASSERT_TRUE(
      host_.write_value("/proc/sys/net/ipv4/conf/nic0/arp_ignore", "2", std::chrono::seconds{10}));
  const InterfaceState before = record("nic0");
  EXPECT_THAT(before.sysctls,
              Contains(testing::Pair("/proc/sys/net/ipv4/conf/nic0/arp_ignore", "2\n")));
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(host_.read_value("/proc/sys/net/ipv4/conf/nic0/arp_ignore"), "2\n");
}

TEST_F(LiveNetwork, ARenamedInterfaceGetsItsNameBack) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  const InterfaceState before = record("nic0");
  const Reverted restored = lose_and_put_back(before, false);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(commands(record("nic0").addresses), commands(before.addresses));
}

TEST_F(LiveNetwork, ALeaseComesBackWithItsRemainingTime) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 valid_lft 5000 preferred_lft 4000 dev nic0");
  const InterfaceState before = record("nic0");
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(words(restored.notes), HasSubstr("has a lease back"));
  const InterfaceState after = record("nic0");
  ASSERT_THAT(after.addresses, Not(IsEmpty()));
  const NetworkItem& lease = after.addresses.front();
  EXPECT_NEAR(static_cast<double>(lease.expires_unix_s),
              static_cast<double>(before.addresses.front().expires_unix_s), 60.0);
}

TEST_F(LiveNetwork, WaitsForTheManagersLease) {
  const std::string leased = "address add 10.77.1.5/24 valid_lft 5000 preferred_lft 4000 dev nic0";
  ip("link set nic0 up");
  ip(leased + " metric 1024");
  const InterfaceState before = record("nic0");
  host_.manager = [&](int pauses) {
    if (pauses == 3) ip(leased + " metric 1024");
  };
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(restored.notes, IsEmpty()) << words(restored.notes);
  EXPECT_EQ(commands(record("nic0").routes), commands(before.routes));
}

TEST_F(LiveNetwork, TheWaitForAManagersLeaseIsBounded) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 valid_lft 5000 preferred_lft 4000 dev nic0");
  const InterfaceState before = record("nic0");
  host_.manager = [](int) {};
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(words(restored.notes), HasSubstr("has a lease back"));
  EXPECT_LE(host_.pauses, 200);
}

TEST_F(LiveNetwork, ExistingItemsAreNoFault) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("route add 10.99.0.0/16 via 10.77.1.1");
  const InterfaceState before = record("nic0");
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(record("nic0"), before);
  for (const NetworkItem& item : before.addresses) EXPECT_TRUE(host_.add_item("nic0", item));
  for (const NetworkItem& item : before.routes) EXPECT_TRUE(host_.add_item("nic0", item));
}

TEST_F(LiveNetwork, UnrestorableItemsAreReportedWithTheirCommand) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("route add 10.99.0.0/16 via 10.77.1.1 dev nic0");
  InterfaceState before = record("nic0");
  std::erase_if(before.addresses, [](const NetworkItem& item) {
    return item.command.find("10.77.1.5") != std::string::npos;
  });
  std::erase_if(before.routes, [](const NetworkItem& item) {
    return item.command.find("10.77.1.0/24") != std::string::npos;
  });
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(words(restored.faults),
              HasSubstr("sudo ip route add 10.99.0.0/16 via 10.77.1.1 dev nic0"));
}

}  // namespace
}  // namespace ztcp::setup
