// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Fabrics of ztcp's own TCP on interfaces that stay with the kernel: by AF_XDP, or by DPDK's mlx5
// driver.
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
using test::only_fault;
using test::plan_of;
using test::replaced;
using test::set_up;
using test::three_nics;
using test::tree_text;
using test::unfit_of_interface;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PlanRequest past_kernel() {
  PlanRequest request;
  request.transport = Transport::kXdp;
  request.group = "ztcp";
  return request;
}

// --- AF_XDP --------------------------------------------------------------------------------------

TEST(ChooseInterfacesPastKernel, AfXdpLeavesTheNicsWithTheKernelAndPinsItsProgram) {
  FakeHost host(three_nics());
  const Plan plan = plan_of(host, past_kernel());
  ASSERT_TRUE(plan.fabric && plan.sockets) << to_text(plan, {});
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth1 10.1.0.5/24", "eth2 10.2.0.5/24"));
  const config::Nic& nic = plan.fabric->nics[0];
  EXPECT_EQ(nic.driver, config::NicDriver::kXdp);
  EXPECT_EQ(nic.mtu_bytes, 9000);
  EXPECT_EQ(nic.first_port, 61000);
  EXPECT_EQ(nic.last_port, 65535);
  EXPECT_THAT(to_text(plan, {}), HasSubstr("ztcp's own TCP over AF_XDP"));

  ASSERT_TRUE(set_up(host, plan.resources).complete());
  ASSERT_EQ(host.state.xdp.size(), 2U);
  const XdpSteering& steering = host.state.xdp.at("/run/ztcp-bpf/eth1");
  EXPECT_EQ(to_string(steering.address), "10.1.0.5");
  EXPECT_EQ(steering.listen_port, 7471);
  const Ownership given = host.state.nodes.at("/run/ztcp-bpf/eth1/sockets").ownership;
  EXPECT_EQ(given, (Ownership{0660, 0, host.groups.at("ztcp")}));
  EXPECT_TRUE(host.state.nodes.contains("/etc/security/limits.d/ztcp.conf"));

  const Plan again = plan_of(host);
  ASSERT_TRUE(again.sockets && again.sockets->is_past_kernel()) << to_text(again, {});
  EXPECT_EQ(again.sockets->why, "as in the config");
  EXPECT_EQ(again.fabric, plan.fabric);
  EXPECT_THAT(dry_run_of(host).changes, IsEmpty());

  ASSERT_TRUE(test::undo(host).complete());
  EXPECT_THAT(host.state.xdp, IsEmpty());
}

TEST(ChooseInterfacesPastKernel, AfXdpPassesOverInterfacesThatAnotherProgramHas) {
  FakeHost host(three_nics());
  host.xdp_obstacles["eth1"] = "has the XDP program cil_xdp (id 7) already";
  const Plan plan = plan_of(host, past_kernel());
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth2 10.2.0.5/24"));
  EXPECT_THAT(unfit_of_interface(plan, "eth1"), HasSubstr("cil_xdp (id 7)"));
}

// The one NIC carries the default route, so it can't be taken; AF_XDP leaves it with the kernel.
std::string one_nic() {
  const std::string text = three_nics();
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    const std::string line = text.substr(at, end - at);
    const auto has = [&](const char* word) { return line.find(word) != std::string::npos; };
    if (!has("06.0") && !has("07.0") && !has("eth1") && !has("eth2")) out += line;
    at = end;
  }
  return out;
}

TEST(ChooseInterfacesPastKernel, AfXdpIsProposedWhereAGpuHasNoNicToTake) {
  FakeHost host(one_nic());
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.fabric && plan.sockets && !plan.sockets->is_past_kernel()) << to_text(plan, {});
  EXPECT_THAT(to_text(plan, {}),
              HasSubstr("Faster: sudo ztcp_setup --transport xdp, ztcp's own TCP on eth0 while the "
                        "kernel keeps the NIC; or "));
  EXPECT_THAT(plan.notes.front().problem.what, HasSubstr("eth0 carries the default route"));
  EXPECT_THAT(plan.notes.front().problem.mend, HasSubstr("--transport xdp"));

  const Plan asked = plan_of(host, past_kernel());
  ASSERT_TRUE(asked.fabric && asked.sockets->is_past_kernel()) << to_text(asked, {});
  EXPECT_THAT(interfaces_of(asked), ElementsAre("eth0 10.0.0.5/24"));

  host.xdp_obstacles["eth0"] = "has the XDP program cil_xdp (id 7) already";
  EXPECT_THAT(to_text(plan_of(host), {}), Not(HasSubstr("--transport xdp")));
}

TEST(ChooseInterfacesPastKernel, AfXdpHasFramesOfOneBufferBeforeLinux66) {
  FakeHost host(three_nics() + "file path=proc/sys/kernel/osrelease text=6.1.0-26-amd64\n");
  const Plan plan = plan_of(host, past_kernel());
  ASSERT_TRUE(plan.fabric) << to_text(plan, {});
  EXPECT_EQ(plan.fabric->nics[0].mtu_bytes, 3822);
}

TEST(ChooseInterfacesPastKernel, AfXdpIsSharedByGpusWithFewerInterfaces) {
  FakeHost host(tree_text("too-few-nics"));
  const Plan plan = plan_of(host, past_kernel());
  ASSERT_TRUE(plan.fabric) << to_text(plan, {});
  const config::Nic& nic = plan.fabric->nics.front();
  EXPECT_EQ(nic.processes, (4 + plan.fabric->nics.size() - 1) / plan.fabric->nics.size());
  ASSERT_TRUE(set_up(host, plan.resources).complete());
  EXPECT_EQ(host.state.xdp.at("/run/ztcp-bpf/" + nic.interface).processes, nic.processes);
  EXPECT_THAT(dry_run_of(host).changes, IsEmpty());
  FakeHost unasked(tree_text("too-few-nics"));
  EXPECT_THAT(to_text(plan_of(unasked), {}), Not(HasSubstr("--transport xdp")));
}

TEST(ChooseInterfacesPastKernel, AfXdpNeedsAQueueForEachProcess) {
  FakeHost host(tree_text("too-few-nics") +
                "dir path=sys/devices/pci0000:00/0000:00:06.0/net/ens6/queues/rx-0\n");
  const Plan plan = plan_of(host, past_kernel());
  EXPECT_FALSE(plan.fabric);
  EXPECT_THAT(to_text(plan, {}), HasSubstr("it has 1 receive queue, and 4 GPUs share"));
  EXPECT_THAT(to_text(plan, {}), HasSubstr("sudo ethtool -L ens6 combined 4"));
}

// --- DPDK's mlx5 driver --------------------------------------------------------------------------

PlanRequest shared_with_dpdk() {
  PlanRequest request = past_kernel();
  request.transport = Transport::kMlx5;
  return request;
}

std::string pages() { return "pages node=0 kib=2048 total=0 free=0\n"; }

template <class Kind>
bool has_resource(const Plan& plan) {
  return std::any_of(plan.resources.begin(), plan.resources.end(),
                     [](const Resource& one) { return std::holds_alternative<Kind>(one.what); });
}

TEST(ChooseInterfacesPastKernel, Mlx5LeavesTheNicsAndTheirDriverWithTheKernel) {
  FakeHost host(three_nics() + pages());
  const Plan plan = plan_of(host, shared_with_dpdk());
  ASSERT_TRUE(plan.fabric && plan.sockets && !plan.has_faults()) << to_text(plan, {});
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth1 10.1.0.5/24", "eth2 10.2.0.5/24"));
  const config::Nic& nic = plan.fabric->nics[0];
  EXPECT_EQ(nic.driver, config::NicDriver::kMlx5);
  EXPECT_EQ(nic.mtu_bytes, 9000);
  EXPECT_EQ(nic.first_port, 61000);
  EXPECT_EQ(nic.last_port, 65535);
  EXPECT_EQ(plan.fabric->hugepages.page_kib, 2048U);
  const std::string text = to_text(plan, {});
  EXPECT_THAT(text, HasSubstr("ztcp's own TCP over DPDK's mlx5 driver"));
  EXPECT_THAT(text, HasSubstr("no NIC is taken, and no driver changes"));
  EXPECT_THAT(text, HasSubstr("Hugepages: "));
  EXPECT_FALSE(has_resource<resource::Driver>(plan));
  EXPECT_FALSE(has_resource<resource::Access>(plan));
  EXPECT_FALSE(has_resource<resource::Module>(plan));
  EXPECT_FALSE(has_resource<resource::XdpProgram>(plan));
  EXPECT_TRUE(has_resource<resource::ReservedPorts>(plan));

  const auto before = host.state.nodes.size();
  ASSERT_TRUE(set_up(host, plan.resources).complete());
  EXPECT_TRUE(host.state.nodes.contains("/etc/security/limits.d/ztcp.conf"));
  const Plan again = plan_of(host);
  ASSERT_TRUE(again.sockets) << to_text(again, {});
  EXPECT_EQ(again.sockets->why, "as in the config");
  EXPECT_EQ(again.fabric, plan.fabric);
  EXPECT_THAT(dry_run_of(host).changes, IsEmpty());

  ASSERT_TRUE(test::undo(host).complete());
  EXPECT_FALSE(host.state.nodes.contains("/etc/security/limits.d/ztcp.conf"));
  EXPECT_LE(host.state.nodes.size(), before);
}

TEST(ChooseInterfacesPastKernel, Mlx5PassesOverNicsOfOtherDrivers) {
  FakeHost host(replaced(three_nics(), "00:06.0 id=15b3:101e class=020000 numa=0 driver=mlx5_core",
                         "00:06.0 id=8086:1592 class=020000 numa=0 driver=ice") +
                pages());
  const Plan plan = plan_of(host, shared_with_dpdk());
  EXPECT_THAT(interfaces_of(plan), ElementsAre("eth2 10.2.0.5/24"));
  EXPECT_EQ(unfit_of_interface(plan, "eth1"), "has the driver ice, not mlx5_core");
}

TEST(ChooseInterfacesPastKernel, Mlx5OnAHostWithoutSuchANicIsRefused) {
  FakeHost host(replaced(three_nics(), "mlx5_core", "ice") + pages());
  const Plan plan = plan_of(host, shared_with_dpdk());
  EXPECT_FALSE(plan.fabric);
  EXPECT_THAT(only_fault(plan).problem.what, HasSubstr("is usable for DPDK's mlx5 driver"));
}

}  // namespace
}  // namespace ztcp::setup
