// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/watch/interface.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp::watch {
namespace {

const std::vector<Interface> kHost = {{"lo", {0x7f000001}, true},
                                      {"docker0", {0xac110001}},
                                      {"eth1", {0x0a000105}},
                                      {"eth0", {0x0a000005}}};

std::string chosen(std::string_view wish, std::string_view nccl = {},
                   std::string_view default_route = {}) {
  const auto address = choose_address(wish, nccl, default_route, kHost);
  return address ? to_string(*address) : "none";
}

TEST(ChooseAddress, TakesTheInterfaceThatIsNamed) {
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
}

TEST(ChooseAddress, ElseTheDefaultRoutesElseWhatThereIs) {
  EXPECT_EQ(chosen("auto", "", "eth0"), "10.0.0.5");
  EXPECT_EQ(chosen("auto"), "10.0.1.5");
  const std::span all(kHost);
  EXPECT_EQ(choose_address("auto", "", "", all.first(2)), Ipv4Address{0x7f000001});
  EXPECT_EQ(choose_address("auto", "", "", all.first(0)), std::nullopt);
}

TEST(DefaultInterface, IsTheOneOfTheLowestMetric) {
  const std::string table =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth1\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth2\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  EXPECT_EQ(default_interface(table), "eth0");
  EXPECT_EQ(default_interface("Iface\n"), "");
  EXPECT_EQ(default_interface("Iface\nbroken\n"), "");
}

TEST(Interfaces, AreThoseOfTheKernel) {
  for (const Interface& i : interfaces()) EXPECT_FALSE(i.name.empty());
}

}  // namespace
}  // namespace ztcp::watch
