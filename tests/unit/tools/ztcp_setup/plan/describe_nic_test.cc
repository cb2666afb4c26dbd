// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "core/interface_identifier.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/plan/plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using test::only_fault;
using test::plan_of;
using test::set_up;
using test::tree_text;
using test::without_iommu;
using test::write_config;
using testing::HasSubstr;

TEST(DescribeNic, ANicWithoutAddressIsAFault) {
  std::string text = tree_text("cloud-flat");
  text.erase(text.find("address if=eth3"), std::strlen("address if=eth3 ip=10.77.3.5/24\n"));
  FakeHost host(text);
  const Plan plan = plan_of(host, without_iommu());
  EXPECT_EQ(only_fault(plan).problem.where, "eth3");
  EXPECT_EQ(exit_code(plan), kExitFaults);
}

// A host's disk image on another machine: the config contains addresses of the first host.
TEST(DescribeNic, ANicWithoutAddressDoesNotInheritAnotherHosts) {
  std::string text = tree_text("cloud-flat");
  FakeHost imaged(text);
  Plan other = plan_of(imaged, without_iommu());
  for (config::Nic& nic : other.fabric->nics) nic.mac.bytes[5] ^= 0xff;
  text.erase(text.find("address if=eth3"), std::strlen("address if=eth3 ip=10.77.3.5/24\n"));
  FakeHost host(text);
  write_config(host, *other.fabric);
  EXPECT_EQ(only_fault(plan_of(host)).problem.where, "eth3");
}

TEST(DescribeNic, ALinkLocalAddressIsTheLastChoice) {
  std::string text = tree_text("cloud-flat");
  text.insert(text.find("address if=eth3"), "address if=eth3 ip=169.254.7.7/16\n");
  FakeHost host(text);
  const Plan plan = plan_of(host, without_iommu());
  ASSERT_TRUE(plan.fabric);
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const config::HostNic& nic = plan.topology.nics[plan.pairs[i].nic];
    if (nic.interface != "eth3") continue;
    EXPECT_EQ(to_string(plan.fabric->nics[i].address), "10.77.3.5/24");
    EXPECT_THAT(nic.left_out, testing::ElementsAre("169.254.7.7/16 on eth3"));
  }
}

// Temporary, link-local and other families' addresses aside.
TEST(DescribeNic, AnIpv6AddressIsTakenWhereThereIsNoOther) {
  std::string text = tree_text("cloud-flat");
  const std::string only = "address if=eth3 ip=10.77.3.5/24\n";
  text.replace(text.find(only), only.size(),
               "address if=eth3 ip=fe80::5/64\naddress if=eth3 ip=fd00::5/64\n"
               "route if=eth3 ipv6=1 to=fd00::/16 via=fe80::1\n");
  FakeHost host(text);
  const Plan plan = plan_of(host, without_iommu());
  ASSERT_TRUE(plan.fabric);
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    if (plan.topology.nics[plan.pairs[i].nic].interface != "eth3") continue;
    EXPECT_EQ(to_string(plan.fabric->nics[i].address), "fd00::5/64");
    ASSERT_TRUE(plan.fabric->nics[i].gateway);
    EXPECT_EQ(to_string(*plan.fabric->nics[i].gateway), "fe80::1");
    return;
  }
  FAIL() << "eth3 is not taken";
}

// ztcp renews such an address, and takes it again where it is made of the MAC address.
TEST(DescribeNic, AnAdvertisedAddressIsTakenFromTheRouterAgain) {
  const auto address_of = [](const std::string& line) -> std::string {
    std::string text = tree_text("cloud-flat");
    const std::string only = "address if=eth3 ip=10.77.3.5/24\n";
    text.replace(text.find(only), only.size(), line);
    FakeHost host(text);
    const Plan plan = plan_of(host, without_iommu());
    if (!plan.fabric) return "no plan";
    for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
      if (plan.topology.nics[plan.pairs[i].nic].interface != "eth3") continue;
      const bool warns = std::ranges::any_of(
          plan.notes, [](const config::Check& check) { return check.name == "lease"; });
      return config::address_text(plan.fabric->nics[i].address) + (warns ? ", leased" : "");
    }
    return "eth3 is not taken";
  };
  const std::string own =
      to_string(address_of_mac({0x2001'0db8ULL << 32, 0}, {{0x52, 0x54, 0, 0xaa, 0, 3}}));
  EXPECT_EQ(address_of("address if=eth3 valid=3600 advertised=1 ip=" + own + "/64\n"), "auto");
  EXPECT_EQ(address_of("address if=eth3 valid=3600 advertised=1 ip=2001:db8::5/64\n"),
            "2001:db8::5/64, leased")
      << "stable-privacy: ztcp would take another one";
  EXPECT_EQ(address_of("address if=eth3 valid=3600 ip=" + own + "/64\n"), own + "/64, leased")
      << "DHCPv6";
}

// The router may change while ztcp has the NIC. A route that leads to one network alone is kept.
TEST(DescribeNic, ADefaultRouteThatARouterAdvertisesIsFoundAgain) {
  const auto gateway_of = [](const std::string& to) -> std::string {
    std::string text = tree_text("cloud-flat");
    const std::string only = "address if=eth3 ip=10.77.3.5/24\n";
    text.replace(text.find(only), only.size(),
                 "address if=eth3 ip=2001:db8::5/64\n"
                 "route if=eth0 ipv6=1 to=::/0 via=fe80::1\n"
                 "route if=eth3 ipv6=1 advertised=1 metric=900 via=fe80::1 to=" +
                     to + "\n");
    FakeHost host(text);
    PlanRequest request = without_iommu();
    request.selection.take = {"eth3"};
    const Plan plan = plan_of(host, request);
    if (!plan.fabric) return "no plan";
    for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
      const auto& gateway = plan.fabric->nics[i].gateway;
      if (plan.topology.nics[plan.pairs[i].nic].interface == "eth3" && gateway)
        return config::gateway_text(*gateway);
    }
    return "eth3 is not taken, or has no gateway";
  };
  EXPECT_EQ(gateway_of("::/0"), "auto");
  EXPECT_EQ(gateway_of("fd00::/16"), "fe80::1");
}

TEST(DescribeNic, AnUntaggedNicLosesTheVlansPriority) {
  FakeHost host(tree_text("cloud-flat"));
  config::Fabric fabric = *plan_of(host, without_iommu()).fabric;
  fabric.nics[0].vlan_id = 7;
  fabric.nics[0].vlan_priority = 3;
  fabric.nics[0].dscp = 46;
  write_config(host, fabric);
  PlanRequest again = without_iommu();
  again.mode = Mode::kFresh;
  const Plan plan = plan_of(host, again);
  ASSERT_TRUE(plan.fabric);
  EXPECT_EQ(plan.fabric->nics[0].vlan_id, 0);
  EXPECT_EQ(plan.fabric->nics[0].vlan_priority, -1);
  EXPECT_EQ(plan.fabric->nics[0].dscp, 46);
}

TEST(DescribeNic, AVlanGivesTagAddressAndMtu) {
  FakeHost host(tree_text("vlan"));
  const Plan plan = plan_of(host, test::for_a_group());
  ASSERT_EQ(plan.fabric->nics.size(), 2U);
  const config::Nic& nic = plan.fabric->nics[0];
  EXPECT_EQ(nic.vlan_id, 100);
  EXPECT_EQ(to_string(nic.address), "10.5.1.2/24");
  EXPECT_EQ(nic.mtu_bytes, 8996);
  EXPECT_EQ(to_string(*nic.gateway), "10.5.1.1");
}

TEST(DescribeNic, QueuesAreLimitedByTheDriver) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = without_iommu();
  EXPECT_EQ(plan_of(host, request).fabric->nics[0].queues, 1U);
  request.queues = 4;
  host.offered_queues = {{"eth5", 4}, {"eth6", 8}};  // The others do not report it.
  const Plan four = plan_of(host, request);
  EXPECT_FALSE(four.has_faults());
  EXPECT_EQ(four.fabric->nics[7].queues, 4U);
  EXPECT_THAT(to_text(four, {}), HasSubstr("Queues of a NIC: 4, each with a poller"));
  host.offered_queues["eth5"] = 2;
  const config::Problem problem = only_fault(plan_of(host, request)).problem;
  EXPECT_EQ(problem.where, "eth5");
  EXPECT_EQ(problem.what, "4 queues wanted, but its driver virtio-pci has at most 2");
  EXPECT_EQ(problem.mend, "ztcp_setup --queues 2, or --queues auto");
  request.queues = config::kAutoQueues;
  const Plan automatic = plan_of(host, request);
  EXPECT_THAT(to_toml(*automatic.fabric), HasSubstr("queues = \"auto\""));
  // Once requested they are kept in the config.
  ASSERT_TRUE(set_up(host, four.resources).complete());
  EXPECT_EQ(plan_of(host, without_iommu()).fabric->nics[3].queues, 4U);
}

}  // namespace
}  // namespace ztcp::setup
