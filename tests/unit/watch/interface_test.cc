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
  const auto address = choose_address(wanted, nccl, default_route, kHost);
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
  EXPECT_EQ(choose_address("auto", "lo", "", host), Ipv4Address{0x0a370001});
  EXPECT_EQ(choose_address("lo", "", "", host), Ipv4Address{0x7f000001})
      << "of processes of this host alone";
}

TEST(ChooseAddress, FallsBackToTheDefaultRouteThenToAnyInterface) {
  EXPECT_EQ(chosen("auto", "", "eth0"), "10.0.0.5");
  EXPECT_EQ(chosen("auto"), "10.0.1.5");
  const std::span all(kHost);
  EXPECT_EQ(choose_address("auto", "", "", all.first(2)), Ipv4Address{0x7f000001});
  EXPECT_EQ(choose_address("auto", "", "", all.first(0)), std::nullopt);
}

TEST(DefaultInterface, HasTheLowestMetric) {
  const std::string table =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth1\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth2\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  EXPECT_EQ(default_interface(table), "eth0");
  EXPECT_EQ(default_interface("Iface\n"), "");
  EXPECT_EQ(default_interface("Iface\nbroken\n"), "");
}

}  // namespace
}  // namespace ztcp::watch
