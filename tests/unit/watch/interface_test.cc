// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/watch/interface.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp::watch {
namespace {

LocalAddress up(const char* interface, const char* address) {
  return {.interface = interface,
          .prefix = *parse_ip_prefix(address),
          .is_up = true,
          .is_running = true,
          .is_loopback = std::string_view(interface) == "lo"};
}

LocalAddress down(LocalAddress one) {
  one.is_up = one.is_running = false;
  return one;
}

const std::vector<LocalAddress> kHost = {
    up("lo", "127.0.0.1/8"),      up("docker0", "172.17.0.1/16"), down(up("eth2", "10.0.2.5/24")),
    up("eth3", "2001:db8::1/64"), up("eth1", "10.0.1.5/24"),      up("eth0", "10.0.0.5/24")};

std::string chosen(std::string_view wanted, std::string_view nccl = {},
                   std::string_view default_route = {}) {
  const auto address = choose_address(wanted, {.ifname = nccl}, default_route, kHost);
  return address ? to_string(*address) : "none";
}

TEST(ChooseAddress, TakesTheNamedInterface) {
  EXPECT_EQ(chosen("eth1", "eth0", "eth0"), "10.0.1.5");
  EXPECT_EQ(chosen("lo"), "127.0.0.1");
  EXPECT_EQ(chosen("eth9"), "none");
  EXPECT_EQ(chosen("eth"), "none") << "a name is no prefix";
}

TEST(ChooseAddress, FollowsNcclsVariable) {
  EXPECT_EQ(chosen("auto", "eth", "eth0"), "10.0.1.5");
  EXPECT_EQ(chosen("auto", "=eth0"), "10.0.0.5");
  EXPECT_EQ(chosen("auto", "=eth"), "none");
  EXPECT_EQ(chosen("auto", "ib,eth0:1"), "10.0.0.5");
  EXPECT_EQ(chosen("auto", "^docker"), "10.0.1.5");
  EXPECT_EQ(chosen("auto", "lo"), "127.0.0.1");
  EXPECT_EQ(chosen("auto", "^=docker0,eth1"), "10.0.0.5");
  EXPECT_EQ(chosen("auto", "^", "eth0"), "10.0.0.5") << "one character says nothing";
}

TEST(ChooseAddress, ARoutedLoopbackAddressIsPreferredToLocalhost) {
  const std::vector<LocalAddress> host = {up("lo", "127.0.0.1/8"), up("lo", "10.55.0.1/32")};
  EXPECT_EQ(choose_address("auto", {.ifname = "lo"}, "", host), Ipv4Address{0x0a370001});
  EXPECT_EQ(choose_address("lo", {}, "", host), Ipv4Address{0x7f000001})
      << "of processes of this host alone";
}

TEST(ChooseAddress, FallsBackToTheDefaultRouteThenToAnyInterface) {
  EXPECT_EQ(chosen("auto", "", "eth0"), "10.0.0.5");
  EXPECT_EQ(chosen("auto"), "10.0.1.5");
  const std::span all(kHost);
  EXPECT_EQ(choose_address("auto", {}, "", all.first(2)), Ipv4Address{0x7f000001});
  EXPECT_EQ(choose_address("auto", {}, "", all.first(0)), std::nullopt);
}

TEST(ChooseAddress, TakesIpv6WhereThereIsNoIpv4) {
  EXPECT_EQ(chosen("eth3", "eth0", "eth0"), "2001:db8::1");
  EXPECT_EQ(chosen("auto", "", "eth3"), "2001:db8::1");
  const std::vector<LocalAddress> both = {up("eth0", "2001:db8::5/64"), up("eth0", "10.0.0.5/24")};
  EXPECT_EQ(choose_address("eth0", {}, "", both), parse_ip("10.0.0.5"));
  const std::vector<LocalAddress> own = {up("lo", "::1/128"), up("lo", "2001:db8::9/128")};
  EXPECT_EQ(choose_address("auto", {.ifname = "lo"}, "", own), parse_ip("2001:db8::9"));
  EXPECT_EQ(choose_address("lo", {}, "", own), parse_ip("::1"));
}

TEST(ChooseAddress, FollowsNcclsFamily) {
  const std::vector<LocalAddress> both = {up("eth0", "10.0.0.5/24"), up("eth0", "2001:db8::5/64")};
  const auto of_family = [&](std::string_view family) {
    return choose_address("auto", {.family = family}, "eth0", both);
  };
  EXPECT_EQ(of_family("AF_INET6"), parse_ip("2001:db8::5"));
  EXPECT_EQ(of_family("AF_INET"), parse_ip("10.0.0.5"));
  EXPECT_EQ(of_family("AF_UNIX"), parse_ip("10.0.0.5")) << "ignored, as by NCCL";
}

TEST(ChooseAddress, LeavesOutAddressesThatPeersCantReach) {
  LocalAddress tentative = up("eth0", "2001:db8::5/64");
  tentative.state = AddressState::kTentative;
  const std::vector<LocalAddress> host = {up("eth0", "fe80::5/64"), tentative,
                                          up("eth1", "2001:db8:1::5/64")};
  EXPECT_EQ(choose_address("auto", {}, "eth0", host), parse_ip("2001:db8:1::5"));
  EXPECT_EQ(choose_address("eth0", {}, "", host), std::nullopt);
}

TEST(DefaultInterface, HasTheLowestMetric) {
  const std::string table =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth1\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth2\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  EXPECT_EQ(default_interface(table, ""), "eth0");
  EXPECT_EQ(default_interface("Iface\n", ""), "");
  EXPECT_EQ(default_interface("Iface\nbroken\n", "broken\n"), "");
}

TEST(DefaultInterface, IsThatOfIpv6WhereThereIsNoneOfIpv4) {
  const std::string any(32, '0');
  const auto route = [&](const std::string& to, const char* metric, const char* flags,
                         const char* interface) {
    return to + " 00 " + any + " 00 fe800000000000000000000000000001 " + metric +
           " 00000001 00000000 " + flags + "     " + interface + "\n";
  };
  const std::string table = route(any, "ffffffff", "00200200", "lo") +
                            route(any, "00000400", "00450003", "eth1") +
                            route(any, "00000100", "00450003", "eth0") +
                            route("fd" + std::string(30, '0'), "00000001", "00000001", "eth2");
  EXPECT_EQ(default_interface("Iface\n", table), "eth0");
  EXPECT_EQ(default_interface("Iface\n", route(any, "ffffffff", "00200200", "lo")), "");
  EXPECT_EQ(default_interface("Iface\neth7 00000000 0100000A 0003 0 0 0 00000000\n", table),
            "eth7");
}

}  // namespace
}  // namespace ztcp::watch
