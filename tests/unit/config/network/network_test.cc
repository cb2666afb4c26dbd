// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Answers of rtnetlink built by hand, and the real ones of this machine.
#include "config/network/network.h"

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/nexthop.h>
#include <string_view>

#include <gtest/gtest.h>

#include "core/socket_address.h"
#include "tests/unit/core/netlink_bytes.h"

namespace ztcp::config {
namespace {

using Message = test::MessageBytes;

// False: the last message is truncated.
bool take(const std::string& bytes, Network& network) {
  return netlink::for_each_message(test::as_bytes(bytes), [&](const netlink::Message& message) {
    take_message(message, network);
  });
}

std::string link_with_mtu(int index, std::string_view name) {
  ifinfomsg fixed{};
  fixed.ifi_index = index;
  return Message(RTM_NEWLINK, fixed)
      .with_bytes(IFLA_IFNAME, std::string(name) + '\0')
      .with(IFLA_MTU, std::uint32_t{9000})
      .bytes();
}

TEST(Network, ReadsAVlanAndItsLowerInterface) {
  ifinfomsg fixed{};
  fixed.ifi_index = 7;
  const std::string data =
      Message(0, fixed).with(IFLA_VLAN_ID, std::uint16_t{100}).attributes(sizeof(fixed));
  const std::string info = Message(0, fixed)
                               .with_bytes(IFLA_INFO_KIND, std::string("vlan") + '\0')
                               .with_bytes(IFLA_INFO_DATA, data)
                               .attributes(sizeof(fixed));
  const std::string vlan = Message(RTM_NEWLINK, fixed)
                               .with_bytes(IFLA_IFNAME, std::string("eth1.100") + '\0')
                               .with(IFLA_LINK, std::uint32_t{3})
                               .with_bytes(IFLA_LINKINFO, info)
                               .bytes();
  Network network;
  EXPECT_TRUE(take(link_with_mtu(3, "eth1") + vlan, network));
  const Interface* found = network.find("eth1.100");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->kind, "vlan");
  EXPECT_EQ(found->vlan_id, 100);
  EXPECT_EQ(network.find(found->lower)->name, "eth1");
  EXPECT_EQ(network.find("eth1")->mtu_bytes, 9000U);
}

TEST(Network, ReadsAddressesAndTheirLifetime) {
  Network network;
  take(link_with_mtu(3, "eth1"), network);
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  fixed.ifa_prefixlen = 24;
  fixed.ifa_index = 3;
  ifa_cacheinfo cache{};
  cache.ifa_valid = 3600;
  const std::string leased = Message(RTM_NEWADDR, fixed)
                                 .with(IFA_ADDRESS, htonl(0x0a000001))
                                 .with(IFA_LOCAL, htonl(0x0a000005))
                                 .with(IFA_CACHEINFO, cache)
                                 .bytes();
  fixed.ifa_flags = IFA_F_SECONDARY;
  const std::string second =
      Message(RTM_NEWADDR, fixed).with(IFA_ADDRESS, htonl(0x0a000006)).bytes();
  EXPECT_TRUE(take(leased + second, network));
  const auto& addresses = network.find("eth1")->ipv4;
  ASSERT_EQ(addresses.size(), 2U);
  EXPECT_EQ(to_string(addresses[0].prefix), "10.0.0.5/24") << "the peer's is not one's own";
  EXPECT_EQ(addresses[0].valid_s, 3600U);
  EXPECT_FALSE(addresses[0].secondary);
  EXPECT_EQ(to_string(addresses[1].prefix), "10.0.0.6/24");
  EXPECT_EQ(addresses[1].valid_s, InterfaceAddress::kForever);
  EXPECT_TRUE(addresses[1].secondary);
}

TEST(Network, KnowsAnAddressThatARouterAdvertised) {
  Network network;
  take(link_with_mtu(3, "eth1"), network);
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET6;
  fixed.ifa_prefixlen = 64;
  fixed.ifa_index = 3;
  const std::array<std::uint64_t, 2> own{htobe64(0x2001'0db8ULL << 32), htobe64(5)};
  for (const std::uint32_t flags : {IFA_F_PERMANENT, IFA_F_MANAGETEMPADDR})
    take(Message(RTM_NEWADDR, fixed).with(IFA_ADDRESS, own).with(IFA_FLAGS, flags).bytes(),
         network);
  const auto& addresses = network.find("eth1")->ipv6;
  ASSERT_EQ(addresses.size(), 2U);
  EXPECT_EQ(to_string(addresses[1].prefix), "2001:db8::5/64");
  EXPECT_FALSE(addresses[0].is_advertised);
  EXPECT_TRUE(addresses[1].is_advertised);
}

TEST(Network, ReadsRoutesOfAnyTableAndOverSeveralHops) {
  Network network;
  rtmsg fixed{};
  fixed.rtm_family = AF_INET;
  fixed.rtm_type = RTN_UNICAST;
  const std::string plain = Message(RTM_NEWROUTE, fixed)
                                .with(RTA_TABLE, std::uint32_t{10001})
                                .with(RTA_OIF, std::uint32_t{3})
                                .with(RTA_PRIORITY, std::uint32_t{512})
                                .with(RTA_GATEWAY, htonl(0x0a000001))
                                .bytes();
  std::string hops;
  for (const int index : {4, 5}) {
    const std::string gateway =
        Message(0, fixed).with(RTA_GATEWAY, htonl(0x0a000001)).attributes(sizeof(fixed));
    rtnexthop hop{};
    hop.rtnh_len = static_cast<unsigned short>(sizeof(hop) + gateway.size());
    hop.rtnh_ifindex = index;
    hops.append(reinterpret_cast<const char*>(&hop), sizeof(hop));
    hops += gateway;
  }
  const std::string multipath =
      Message(RTM_NEWROUTE, fixed).with_bytes(RTA_MULTIPATH, hops).bytes();
  fixed.rtm_protocol = RTPROT_RA;
  const std::string advertised =
      Message(RTM_NEWROUTE, fixed).with(RTA_OIF, std::uint32_t{6}).bytes();
  fixed.rtm_type = RTN_UNREACHABLE;
  const std::string nowhere = Message(RTM_NEWROUTE, fixed).with(RTA_OIF, std::uint32_t{1}).bytes();
  EXPECT_TRUE(take(plain + multipath + advertised + nowhere, network));
  ASSERT_EQ(network.routes.size(), 4U);
  EXPECT_FALSE(network.routes[0].is_advertised);
  EXPECT_TRUE(network.routes[3].is_advertised);
  EXPECT_EQ(network.routes[0].table, 10001U);
  EXPECT_EQ(network.routes[0].metric, 512U);
  EXPECT_EQ(network.routes[0].destination.length, 0);
  EXPECT_EQ(to_string(*network.routes[0].gateway), "10.0.0.1");
  EXPECT_EQ(network.routes[1].interface, 4U);
  EXPECT_EQ(network.routes[2].interface, 5U);
  EXPECT_TRUE(network.routes[2].gateway);
}

// The kernel's form with net.ipv4.nexthop_compat_mode=0.
TEST(Network, ReadsRoutesWithOnlyANexthopObject) {
  const auto object = [](std::uint32_t id, std::uint32_t interface, std::uint32_t gateway) {
    nhmsg fixed{};
    fixed.nh_family = AF_INET;
    return Message(RTM_NEWNEXTHOP, fixed)
        .with(NHA_ID, id)
        .with(NHA_OIF, interface)
        .with(NHA_GATEWAY, htonl(gateway))
        .bytes();
  };
  std::array<nexthop_grp, 2> members{};
  members[0].id = 7;
  members[1].id = 8;
  // Its number is smaller than its members'.
  const std::string group = Message(RTM_NEWNEXTHOP, nhmsg{})
                                .with(NHA_ID, std::uint32_t{5})
                                .with(NHA_GROUP, members)
                                .bytes();
  rtmsg fixed{};
  fixed.rtm_family = AF_INET;
  fixed.rtm_type = RTN_UNICAST;
  const auto route = [&](std::uint32_t id) {
    return Message(RTM_NEWROUTE, fixed).with(RTA_NH_ID, id).bytes();
  };
  Network network;
  EXPECT_TRUE(take(
      group + object(7, 3, 0x0a000001) + object(8, 4, 0x0a000101) + route(8) + route(5) + route(99),
      network));
  ASSERT_EQ(network.routes.size(), 3U) << "none by an object that is not there";
  EXPECT_EQ(network.routes[0].interface, 4U);
  EXPECT_EQ(to_string(*network.routes[0].gateway), "10.0.1.1");
  EXPECT_EQ(network.routes[1].interface, 3U);
  EXPECT_EQ(to_string(*network.routes[1].gateway), "10.0.0.1");
  EXPECT_EQ(network.routes[2].interface, 4U);
}

// Every cut and every flipped length: nothing is read beyond the end.
TEST(Network, DamagedAnswersAreReadWithinBounds) {
  const std::string whole = link_with_mtu(3, "eth1") + link_with_mtu(4, "eth2");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Network network;
    const bool between = length == 0 || length == whole.size() / 2;
    EXPECT_EQ(take(whole.substr(0, length), network), between) << length;
    EXPECT_LE(network.interfaces.size(), 2U);
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x7f);
    Network network;
    take(damaged, network);
    EXPECT_LE(network.interfaces.size(), 2U);
  }
}

TEST(Network, AgreesWithTheLibraryOnThisMachine) {
  const auto network = read_network();
  ASSERT_TRUE(network) << to_string(network.error());
  ASSERT_NE(network->find("lo"), nullptr);
  EXPECT_EQ(network->find("lo")->index, 1U);
  ifaddrs* first = nullptr;
  ASSERT_EQ(::getifaddrs(&first), 0);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr ||
        (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6))
      continue;
    SocketAddress socket_address;
    std::memcpy(&socket_address.storage, entry->ifa_addr,
                entry->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const IpAddress value = to_endpoint(socket_address).address;
    bool found = false;
    for (const Interface& interface : network->interfaces)
      for (const auto* addresses : {&interface.ipv4, &interface.ipv6})
        for (const InterfaceAddress& address : *addresses)
          found = found || address.prefix.address == value;
    EXPECT_TRUE(found) << to_string(value);
  }
  ::freeifaddrs(first);
}

}  // namespace
}  // namespace ztcp::config
