// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/interface_choice.h"

#include <gtest/gtest.h>

#include "tests/unit/sockets/kernel/local_host.h"

namespace ztcp::sockets {
namespace {

using Host = std::vector<LocalAddress>;

// In the order of getifaddrs(): IPv4 first, then IPv6, global before link-local.
const Host kCloud = {at("lo", "127.0.0.1/8", 1),   at("eth0", "10.0.0.5/24", 2),
                     at("eth1", "10.0.1.5/24", 3), at("docker0", "172.17.0.1/16", 4, "no-carrier"),
                     at("lo", "::1/128", 1),       at("eth0", "2001:db8::5/64", 2),
                     at("eth0", "fe80::5/64", 2),  at("eth1", "fe80::6/64", 3)};

// "eth0 10.0.0.5/24, eth1 10.0.1.5/24"
std::string taken(const InterfaceRequest& request, const Host& host = kCloud) {
  std::string text;
  for (const LocalAddress& one : choose_interfaces(request, host).taken)
    text += (text.empty() ? "" : ", ") + one.interface + " " + to_string(one.prefix);
  return text;
}

InterfaceRequest named(std::string ifname, std::string family = {}) {
  return {.ifname = std::move(ifname), .family = std::move(family)};
}

InterfaceRequest rank_0_at(std::string comm_id, std::string_view address, std::uint32_t zone = 0) {
  return {.comm_id = std::move(comm_id), .comm_id_host = parse_ip(address), .comm_id_zone = zone};
}

TEST(ChooseInterfaces, WithoutARequestAllButLoopbackAndBridgesAreChosen) {
  EXPECT_EQ(taken({}), "eth0 10.0.0.5/24, eth1 10.0.1.5/24");
  EXPECT_EQ(choose_interfaces({}, kCloud).by, "NCCL's rules (all but docker*, lo* and virbr*)");
}

TEST(ChooseInterfaces, InfinibandIsPreferredToAllOthers) {
  const Host host = {at("eth0", "10.0.0.5/24", 2), at("ib0", "10.9.0.5/24", 3),
                     at("ibs4", "10.9.1.5/24", 4)};
  EXPECT_EQ(taken({}, host), "ib0 10.9.0.5/24, ibs4 10.9.1.5/24");
  EXPECT_EQ(choose_interfaces({}, host).by, "NCCL's rules (ib* before all others)");
  EXPECT_EQ(taken(named("eth"), host), "eth0 10.0.0.5/24");
}

TEST(ChooseInterfaces, BridgesAndLoopbackAreChosenIfThereIsNothingElse) {
  const Host bridges = {at("lo", "127.0.0.1/8", 1), at("virbr0", "192.168.122.1/24", 5),
                        at("docker0", "172.17.0.1/16", 4)};
  EXPECT_EQ(taken({}, bridges), "docker0 172.17.0.1/16");
  EXPECT_EQ(taken({}, {bridges[0], bridges[1]}), "lo 127.0.0.1/8");
  EXPECT_EQ(taken({}, {bridges[1]}), "virbr0 192.168.122.1/24");
  EXPECT_EQ(choose_interfaces({}, {bridges.data() + 1, 1}).by,
            "NCCL's rules (virbr*, since there is no other)");
  EXPECT_EQ(taken({}, {}), "");
}

TEST(ChooseInterfaces, NcclSocketIfnameAloneDecidesIfItIsSet) {
  EXPECT_EQ(taken(named("eth1")), "eth1 10.0.1.5/24");
  EXPECT_EQ(taken(named("=eth1,lo")), "lo 127.0.0.1/8, eth1 10.0.1.5/24");
  EXPECT_EQ(taken(named("^eth0")), "lo 127.0.0.1/8, eth1 10.0.1.5/24");
  EXPECT_EQ(taken(named("ens")), "") << "no other interface takes its place";
  EXPECT_EQ(choose_interfaces(named("ens"), kCloud).by, "NCCL_SOCKET_IFNAME=ens");
  EXPECT_EQ(taken(named("=")), taken({})) << "one character says nothing";
}

TEST(ChooseInterfaces, TheFamilyIsTheFirstAddressesUnlessItIsSaid) {
  EXPECT_EQ(taken(named("", "AF_INET")), "eth0 10.0.0.5/24, eth1 10.0.1.5/24");
  EXPECT_EQ(taken(named("", "AF_INET6")), "eth0 2001:db8::5/64");
  EXPECT_EQ(taken(named("eth1", "AF_INET6")), "eth1 fe80::6/64");
  EXPECT_EQ(taken(named("lo", "AF_INET6")), "") << "NCCL never takes ::1";
  EXPECT_EQ(taken(named("eth0", "inet6")), "eth0 10.0.0.5/24") << "NCCL ignores unknown families";
  EXPECT_EQ(choose_interfaces(named("eth0", "AF_INET6"), kCloud).by,
            "NCCL_SOCKET_IFNAME=eth0 and NCCL_SOCKET_FAMILY=AF_INET6");
  const Host only_v6 = {at("lo", "127.0.0.1/8", 1), at("eth0", "2001:db8::5/64", 2)};
  EXPECT_EQ(taken({}, only_v6), "eth0 2001:db8::5/64");
}

TEST(ChooseInterfaces, AnInterfaceWithoutCarrierIsNotChosen) {
  const Host host = {at("eth0", "10.0.0.5/24", 2, "no-carrier"),
                     at("eth1", "10.0.1.5/24", 3, "down"), at("eth2", "10.0.2.5/24", 4)};
  EXPECT_EQ(taken({}, host), "eth2 10.0.2.5/24");
  EXPECT_EQ(taken(named("eth0"), host), "");
}

TEST(ChooseInterfaces, AnInterfaceWithTwoAddressesIsChosenOnce) {
  const Host host = {at("eth0", "10.0.0.5/24", 2), at("eth0", "10.0.0.6/24", 2),
                     at("eth1", "10.0.1.5/24", 3)};
  EXPECT_EQ(taken({}, host), "eth0 10.0.0.5/24, eth1 10.0.1.5/24");
}

TEST(ChooseInterfaces, AnInterfacesFirstAddressThatPeersReachIsChosen) {
  EXPECT_EQ(taken({}, {at("eth0", "169.254.7.5/16", 2), at("eth0", "10.0.0.6/24", 2)}),
            "eth0 10.0.0.6/24");
  EXPECT_EQ(taken(named("lo"), {at("lo", "127.0.0.1/8", 1), at("lo", "10.55.0.1/32", 1)}),
            "lo 10.55.0.1/32")
      << "an address that is routed to the host";
  EXPECT_EQ(taken(named("lo")), "lo 127.0.0.1/8");
}

LocalAddress in_state(LocalAddress one, AddressState state) {
  one.state = state;
  return one;
}

TEST(ChooseInterfaces, ADuplicateAddressIsNotChosen) {
  const LocalAddress duplicate = in_state(at("v0", "fd66::9/64", 2), AddressState::kDuplicate);
  const LocalAddress good = at("v0", "fd66::2/64", 2);
  EXPECT_EQ(taken({}, {duplicate, good}), "v0 fd66::2/64");
  EXPECT_EQ(taken({}, {duplicate}), "");
  EXPECT_EQ(taken(rank_0_at("[fd66::1]:4444", "fd66::1"), {duplicate, good}), "v0 fd66::2/64");
  const LocalAddress fresh = in_state(at("v0", "fd66::9/64", 2), AddressState::kTentative);
  EXPECT_EQ(taken({}, {fresh, good}), "v0 fd66::2/64");
  EXPECT_EQ(taken({}, {fresh}), "v0 fd66::9/64") << "usable in two seconds";
}

LocalAddress part_of(const char* master, LocalAddress one) {
  one.master = master;
  return one;
}

TEST(ChooseInterfaces, BondMembersAndLinkLocalAreChosenOnlyIfThereIsNoOther) {
  const LocalAddress slave = part_of("bond0", at("eth0", "10.0.0.5/24", 2));
  const LocalAddress bond = at("bond0", "10.0.0.6/24", 5);
  const LocalAddress local = at("eth3", "fe80::6/64", 4);
  EXPECT_EQ(taken({}, {slave, bond, local}), "bond0 10.0.0.6/24");
  const auto choice = choose_interfaces({}, Host{slave, bond, local});
  ASSERT_EQ(choice.left_out.size(), 2U);
  EXPECT_EQ(oddity_of(choice.left_out[0]), "is a part of bond0");
  EXPECT_EQ(oddity_of(choice.left_out[1]), "has a link-local address alone");
  EXPECT_EQ(taken({}, {slave, local}), "eth0 10.0.0.5/24, eth3 fe80::6/64");
  EXPECT_EQ(taken(named("=eth0,eth3"), {slave, bond, local}), "eth0 10.0.0.5/24, eth3 fe80::6/64")
      << "chosen by name";
}

TEST(ChooseInterfaces, AtMostSixteenInterfacesAreChosen) {
  Host host;
  for (std::uint32_t i = 0; i < 20; ++i)
    host.push_back(at("eth" + std::to_string(i), "10.0." + std::to_string(i) + ".5/24", i + 2));
  EXPECT_EQ(choose_interfaces({}, host).taken.size(), 16U);
  EXPECT_EQ(choose_interfaces({}, host).taken.back().interface, "eth15");
}

TEST(ChooseInterfaces, TheInterfaceInRankZerosNetworkIsPreferred) {
  EXPECT_EQ(taken(rank_0_at("10.0.1.77:4444", "10.0.1.77")), "eth1 10.0.1.5/24");
  EXPECT_EQ(choose_interfaces(rank_0_at("10.0.1.77:4444", "10.0.1.77"), kCloud).by,
            "NCCL_COMM_ID=10.0.1.77:4444");
  EXPECT_EQ(taken(rank_0_at("10.7.1.77:4444", "10.7.1.77")), taken({}))
      << "in no network of this host";
  EXPECT_EQ(taken(rank_0_at("[2001:db8::9]:4444", "2001:db8::9")), "eth0 2001:db8::5/64");
  EXPECT_EQ(taken(rank_0_at("127.0.0.1:4444", "127.0.0.1")), "lo 127.0.0.1/8");
  // NCCL_SOCKET_IFNAME goes before, and so does InfiniBand.
  InterfaceRequest both = rank_0_at("10.0.1.77:4444", "10.0.1.77");
  both.ifname = "eth0";
  EXPECT_EQ(taken(both), "eth0 10.0.0.5/24");
  Host with_ib = kCloud;
  with_ib.push_back(at("ib0", "10.9.0.5/24", 9));
  EXPECT_EQ(taken(rank_0_at("10.0.1.77:4444", "10.0.1.77"), with_ib), "ib0 10.9.0.5/24");
}

TEST(ChooseInterfaces, ALinkLocalRankZeroIsReachedByItsZone) {
  EXPECT_EQ(taken(rank_0_at("[fe80::9%eth1]:4444", "fe80::9", 3)), "eth1 fe80::6/64");
  EXPECT_EQ(taken(rank_0_at("[fe80::9%eth0]:4444", "fe80::9", 2)), "eth0 fe80::5/64");
  EXPECT_EQ(taken(rank_0_at("[fe80::9]:4444", "fe80::9")), taken({}));
}

std::string host_of(std::string_view comm_id) {
  const auto host = comm_id_host(comm_id);
  return host ? host->name + "|" + host->zone : "none";
}

TEST(CommIdHost, IsParsedInEveryFormThatNcclAccepts) {
  EXPECT_EQ(host_of("10.0.0.1:4444"), "10.0.0.1|");
  EXPECT_EQ(host_of("host7.example:4444"), "host7.example|");
  EXPECT_EQ(host_of("[2001:db8::1]:4444"), "2001:db8::1|");
  EXPECT_EQ(host_of("[fe80::1%eth0]:4444"), "fe80::1|eth0");
  EXPECT_EQ(host_of("[fe80::1%]:4444"), "fe80::1|");
  EXPECT_EQ(host_of(""), "none");
  EXPECT_EQ(host_of(":4444"), "none");
  EXPECT_EQ(host_of("[2001:db8::1"), "none");
}

}  // namespace
}  // namespace ztcp::sockets
