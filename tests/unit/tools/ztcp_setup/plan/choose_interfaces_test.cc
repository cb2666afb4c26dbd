// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Fabrics of kernel sockets: chosen in place of a refusal or on request, and their interfaces.
#include <algorithm>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/plan/interfaces.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::dry_run_of;
using test::FakeHost;
using test::interfaces_of;
using test::item;
using test::only_fault;
using test::plan_of;
using test::replaced;
using test::set_up;
using test::three_nics;
using test::tree_text;
using test::unfit_of_interface;
using test::write_config;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PlanRequest sockets() {
  PlanRequest request;
  request.transport = Transport::kSockets;
  return request;
}

PlanRequest ustack() {
  PlanRequest request = test::without_iommu();
  request.transport = Transport::kUstack;
  return request;
}

// --- In place of a refusal
// ------------------------------------------------------------------------

TEST(ChooseInterfaces, TooFewNicsSwitchToSocketsWithAWarning) {
  FakeHost host(tree_text("too-few-nics"));
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.fabric && plan.sockets) << to_text(plan, {});
  EXPECT_THAT(interfaces_of(plan), ElementsAre("ens6 10.77.6.5/24", "bond0 10.77.9.5/24"));
  ASSERT_EQ(plan.pairs.size(), 4U) << "one for each GPU";
  EXPECT_EQ(plan.fabric_nic(plan.pairs[1]).interface, "bond0") << "as near, and idle so far";
  EXPECT_EQ(exit_code(plan), kExitWarnings);
  const config::Check& note = plan.notes.front();
  EXPECT_EQ(note.name, "transport");
  EXPECT_THAT(note.problem.what,
              HasSubstr("4 GPUs need 4 NICs of their own, 1 of 3 are usable; "
                        "ens5 carries the default route; ens7 belongs to bond0"));
  EXPECT_THAT(note.problem.what, HasSubstr("all 4 GPUs communicate over the kernel's TCP"));
  EXPECT_EQ(note.problem.mend,
            "the faster way: attach 3 more elastic NICs to this instance, then "
            "sudo ztcp_setup --transport ustack");
  const std::string text = to_text(plan, {});
  EXPECT_THAT(text, HasSubstr("Transport: kernel sockets for the whole host (4 GPUs need 4 NICs"));
  EXPECT_THAT(text, HasSubstr("Faster: attach 3 more"));
  EXPECT_THAT(text, HasSubstr("ens5 is not used: it carries the default route; --take ens5"));
  EXPECT_THAT(text, Not(HasSubstr("Hugepages")));
}

TEST(ChooseInterfaces, ADriverThatKeepsItsNicsSwitchesToSockets) {
  FakeHost host(three_nics());
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.sockets);
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth1 10.1.0.5/24", "eth2 10.2.0.5/24"));
  EXPECT_THAT(plan.sockets->why, HasSubstr("eth1 has the driver mlx5_core, which keeps"));
  EXPECT_EQ(plan.fabric->nics[0].speed_mbps, 0U) << "its driver tells, now and later";
  EXPECT_THAT(to_text(plan, {}), HasSubstr("100000"));
  for (const config::Check& note : plan.notes) EXPECT_EQ(note.name, "transport");
}

TEST(ChooseInterfaces, ARequestForUstackOrACountOfNicsIsRefused) {
  FakeHost host(tree_text("too-few-nics"));
  EXPECT_THAT(only_fault(plan_of(host, ustack())).problem.what, HasSubstr("4 GPUs need 4 NICs"));
  PlanRequest two = test::nics_without_gpus();
  two.nics = 2;
  EXPECT_THAT(only_fault(plan_of(host, two)).problem.mend,
              HasSubstr("or ztcp_setup --transport sockets"));
  PlanRequest queues;
  queues.queues = 2;
  for (const PlanRequest& request : {test::without_iommu(), queues})
    EXPECT_THAT(only_fault(plan_of(host, request)).problem.mend,
                HasSubstr("or ztcp_setup --transport sockets"))
        << "an option that would mean nothing";
}

// A missing NIC does not change the transport of a host that is set up.
TEST(ChooseInterfaces, AConfigKeepsItsTransport) {
  const std::string text = tree_text("cloud-flat");
  FakeHost before(text);
  const Plan first = plan_of(before, test::without_iommu());
  ASSERT_TRUE(first.fabric);
  FakeHost host(replaced(text, "driver=virtio-pci", "driver=mlx5_core"));
  write_config(host, *first.fabric);
  EXPECT_THAT(only_fault(plan_of(host)).problem.what, HasSubstr("8 GPUs need 8 NICs"));

  FakeHost other(text);
  const Plan asked = plan_of(other, sockets());
  ASSERT_TRUE(set_up(other, asked.resources).complete());
  const Plan again = plan_of(other);
  ASSERT_TRUE(again.sockets) << "enough NICs, but nobody asked for them to be taken";
  EXPECT_EQ(again.sockets->why, "as in the config");
  EXPECT_EQ(again.sockets->faster_way, "sudo ztcp_setup --transport ustack");
  EXPECT_EQ(again.fabric, asked.fabric);
  EXPECT_THAT(dry_run_of(other).changes, IsEmpty());
  const Plan changed = plan_of(other, ustack());
  ASSERT_TRUE(changed.fabric && !changed.sockets);
  EXPECT_EQ(changed.fabric->nics.size(), 8U);
  EXPECT_EQ(changed.fabric->hugepages.per_process_mib, 5120U);
}

// --- Resources -----------------------------------------------------------------------------------

TEST(ChooseInterfaces, OnlyTheConfigIsWritten) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = sockets();
  request.group = "ztcp";
  const DryRun run = dry_run_of(host, request);
  ASSERT_FALSE(run.plan.has_faults()) << to_text(run.plan, {});
  EXPECT_EQ(exit_code(run.plan), run.plan.notes.empty() ? kExitGood : kExitWarnings);
  ASSERT_EQ(run.changes.size(), 1U);
  EXPECT_EQ(run.changes[0].what, "the config");
  EXPECT_EQ(run.plan.fabric->host.host_class, config::HostClass::kUnprivileged);
  const auto loaded = config::parse(to_toml(*run.plan.fabric), run.plan.fabric->path);
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  EXPECT_EQ(*loaded.fabric, *run.plan.fabric);
}

// Their interfaces are gone with the kernel driver.
TEST(ChooseInterfaces, NicsTakenByZtcpMustBeGivenBackFirst) {
  FakeHost host(tree_text("cloud-flat"));
  ASSERT_TRUE(set_up(host, plan_of(host, test::without_iommu()).resources).complete());
  const Plan plan = plan_of(host, sockets());
  ASSERT_TRUE(plan.has_faults());
  EXPECT_THAT(plan.notes.front().problem.what, HasSubstr("is taken by ztcp"));
  EXPECT_THAT(plan.notes.front().problem.mend, HasSubstr("sudo ztcp_setup --undo"));
}

// --- Choice of interfaces ------------------------------------------------------------------------

TEST(ChooseInterfaces, TheDefaultRoutesInterfaceIsUsedAloneOrByName) {
  FakeHost host(three_nics());
  EXPECT_THAT(unfit_of_interface(plan_of(host), "eth0"),
              HasSubstr("carries the default route; --take eth0 uses it as well"));
  PlanRequest named = sockets();
  named.selection.take = {"eth0"};
  EXPECT_EQ(interfaces_of(plan_of(host, named)).size(), 3U);
  PlanRequest alone = sockets();
  alone.selection.keep = {"eth1", "0000:00:07.0"};
  const Plan plan = plan_of(host, alone);
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth0 10.0.0.5/24"));
  EXPECT_EQ(unfit_of_interface(plan, "eth2"), "was named by --keep");
}

TEST(ChooseInterfaces, ASlowInterfaceIsLeftOut) {
  FakeHost host(replaced(three_nics(), "mac=0a:00:00:00:00:06 mtu=9000 speed=100000",
                         "mac=0a:00:00:00:00:06 mtu=9000 speed=1000"));
  EXPECT_THAT(interfaces_of(plan_of(host)), ElementsAre("eth2 10.2.0.5/24"));
  EXPECT_THAT(unfit_of_interface(plan_of(host), "eth1"),
              HasSubstr("has 1000 Mb/s, another has 100000"));
  PlanRequest named = sockets();
  named.selection.take = {"eth1"};
  EXPECT_EQ(interfaces_of(plan_of(host, named)).size(), 2U);
}

TEST(ChooseInterfaces, InterfacesWithoutAddressCarrierOrLinkAreLeftOut) {
  FakeHost host(three_nics());
  host.state.links["eth1"].addresses.clear();
  host.without_carrier = {"eth2"};
  const Plan plan = plan_of(host);
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth0 10.0.0.5/24"));
  EXPECT_EQ(unfit_of_interface(plan, "eth1"), "has no address");
  EXPECT_EQ(unfit_of_interface(plan, "eth2"), "has no carrier (eth2)");
  host.state.links["eth0"].up = false;
  const Plan none = plan_of(host, sockets());
  EXPECT_FALSE(none.fabric);
  EXPECT_THAT(only_fault(none).problem.what, HasSubstr("; eth0 is down (eth0)"));
}

TEST(ChooseInterfaces, IPv6IsUsedWithoutAnIPv4Address) {
  FakeHost host(three_nics());
  host.state.links["eth1"].addresses = {item("address add fe80::5/64 dev eth1"),
                                        item("address add fd00:1::5/64 dev eth1")};
  host.state.links["eth2"].addresses = {item("address add 169.254.3.4/16 dev eth2"),
                                        item("address add fe80::6/64 dev eth2")};
  EXPECT_THAT(interfaces_of(plan_of(host)),
              ElementsAre("eth1 fd00:1::5/64", "eth2 169.254.3.4/16"));
}

TEST(ChooseInterfaces, FindsAddressesOnVlansAndBonds) {
  FakeHost vlan(tree_text("vlan"));
  EXPECT_THAT(interfaces_of(plan_of(vlan, sockets())), testing::Contains("eth1.100 10.5.1.2/24"));
  FakeHost host(three_nics());
  for (const char* name : {"eth1", "eth2"}) {
    host.state.links[name].addresses.clear();
    host.state.links[name].master = "bond0";
  }
  InterfaceState bond;
  bond.name = "bond0";
  bond.kind = "bond";
  bond.up = true;
  bond.addresses = {item("address add 10.9.0.5/24 dev bond0")};
  host.state.links["bond0"] = bond;
  const Plan plan = plan_of(host);
  EXPECT_THAT(interfaces_of(plan), ElementsAre("bond0 10.9.0.5/24"));
  EXPECT_EQ(unfit_of_interface(plan, "eth2"), "shares bond0 with 0000:00:06.0");
  PlanRequest named = sockets();
  named.selection.keep = {"bond0"};
  EXPECT_THAT(interfaces_of(plan_of(host, named)), ElementsAre("eth0 10.0.0.5/24"));
}

// --- Values from the config ----------------------------------------------------------------------

TEST(ChooseInterfaces, TheOperatorsSettingsOfAnInterfaceStay) {
  FakeHost host(three_nics());
  PlanRequest named = sockets();
  named.selection.take = {"eth0"};
  config::Fabric edited = *plan_of(host, named).fabric;
  host.state.links["eth1"].addresses.push_back(item("address add fd00:1::5/64 dev eth1"));
  edited.nics[1].address = *parse_ip_prefix("fd00:1::5/64");
  edited.nics[1].first_port = 9000;
  edited.nics[1].last_port = 9100;
  edited.nics[1].speed_mbps = 50000;
  write_config(host, edited);
  const Plan plan = plan_of(host);
  EXPECT_EQ(*plan.fabric, edited) << "eth0, too, which was taken by name once";
}

TEST(ChooseInterfaces, AddedInterfacesFollowTheOthers) {
  FakeHost host(three_nics());
  PlanRequest first = sockets();
  first.selection.keep = {"eth1"};
  ASSERT_TRUE(set_up(host, plan_of(host, first).resources).complete());
  PlanRequest adding;
  adding.mode = Mode::kAdd;
  const Plan plan = plan_of(host, adding);
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth2 10.2.0.5/24", "eth1 10.1.0.5/24"));
  EXPECT_EQ(plan.fabric->nics[1].name, "ztcp1");
}

TEST(ChooseInterfaces, HandWrittenConfigsAreNotChanged) {
  FakeHost host(three_nics());
  config::Fabric fabric = *plan_of(host).fabric;
  fabric.nics[1].interface = "eth7";
  write_config(host, fabric);
  const Plan gone = plan_of(host);
  EXPECT_FALSE(gone.has_faults());
  EXPECT_THAT(gone.notes.front().problem.what, HasSubstr("has it on eth7, which has no address"));

  InterfaceState dummy;
  dummy.name = "eth7";
  dummy.kind = "dummy";
  dummy.up = true;
  dummy.addresses = {item("address add 10.7.0.5/24 dev eth7")};
  host.state.links["eth7"] = dummy;
  EXPECT_THAT(only_fault(plan_of(host)).problem.what,
              HasSubstr("over eth7, which belongs to no NIC on"));

  FakeHost server(tree_text("server-8gpu-9nic"));
  fabric.nics[1] = plan_of(server).fabric->nics[1];
  fabric.hugepages.page_kib = 2048;
  write_config(host, fabric);
  EXPECT_THAT(only_fault(plan_of(host)).problem.what, HasSubstr("has NICs of several drivers"));
}

// Two ports of one PCI function (mlx4): the first has no cable, the second has the network.
constexpr const char* kTwoPorts =
    "node id=0 cpus=0-7 memory_mib=65536\n"
    "pci path=pci0000:00/0000:00:1f.6 id=8086:15b7 class=020000 numa=0 driver=e1000e\n"
    "net path=pci0000:00/0000:00:1f.6 name=eno1 mac=60:45:bd:00:00:70 mtu=1500 speed=1000\n"
    "pci path=pci0000:00/0000:04:00.0 id=15b3:1003 class=020000 numa=0 driver=mlx4_core\n"
    "net path=pci0000:00/0000:04:00.0 name=enp4s0 mac=60:45:bd:00:00:7b mtu=1500 speed=-1\n"
    "net path=pci0000:00/0000:04:00.0 name=enp4s0d1 mac=60:45:bd:00:00:7c mtu=9000 speed=40000\n"
    "address if=eno1 ip=192.168.5.2/24\n"
    "address if=enp4s0d1 ip=10.0.1.4/24\n"
    "route if=eno1 via=192.168.5.1\n";

TEST(ChooseInterfaces, EachPortOfAFunctionIsFound) {
  FakeHost host(kTwoPorts);
  EXPECT_THAT(interfaces_of(plan_of(host, sockets())), ElementsAre("enp4s0d1 10.0.1.4/24"));
  PlanRequest kept = sockets();
  kept.selection.keep = {"enp4s0d1"};
  EXPECT_THAT(interfaces_of(plan_of(host, kept)), ElementsAre("eno1 192.168.5.2/24"));
  PlanRequest both = sockets();
  both.selection.take = {"eno1", "enp4s0d1"};
  EXPECT_THAT(interfaces_of(plan_of(host, both)), testing::Contains("enp4s0d1 10.0.1.4/24"));
  PlanRequest whole = test::nics_without_gpus();
  whole.transport = Transport::kUstack;
  whole.selection.take = {"enp4s0d1"};
  const Plan refused = plan_of(host, whole);
  EXPECT_TRUE(refused.has_faults());
  EXPECT_THAT(unfit_of_interface(refused, "enp4s0d1"), HasSubstr("has the driver mlx4_core"));
}

// Azure: the interface with the address is not on PCI, and the VF below it carries its packets.
TEST(ChooseInterfaces, AVmbusInterfaceAboveAVirtualFunctionIsFound) {
  const std::string bus = "LNXSYSTM:00/MSFT1000:00/";
  const std::string function = bus + "7870d3a9/pci7870:00/7870:00:00.0";
  std::string tree =
      "node id=0 cpus=0-7 memory_mib=65536\n"
      "pci path=" +
      function + " id=1414:00ba class=020000 numa=0 driver=mana\n";
  for (const char* number : {"0", "1"}) {
    const std::string n = number;
    const std::string mac = "60:45:bd:00:00:0" + n;
    const std::string vf = "enP30832s" + n;
    tree += "net path=" + function + " name=" + vf + " mac=" + mac + " mtu=1500 speed=200000\n";
    tree += "net path=" + bus + "f8615163-" + n + " name=eth" + n + " mac=" + mac +
            " mtu=1500 speed=200000\n";
    tree += "link path=sys/class/net/" + vf + "/master to=../eth" + n + "\n";
    tree += "address if=eth" + n + " ip=10.0." + n + ".4/24\n";
  }
  FakeHost host(tree + "route if=eth0 via=10.0.0.1\n");
  EXPECT_THAT(interfaces_of(plan_of(host, sockets())), ElementsAre("eth1 10.0.1.4/24"))
      << "the default route's stays with the machine";
}

}  // namespace
}  // namespace ztcp::setup
