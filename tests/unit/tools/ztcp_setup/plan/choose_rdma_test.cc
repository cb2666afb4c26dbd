// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Fabrics of RDMA devices: their ports, their GPUs, and the resources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::dry_run_of;
using test::FakeHost;
using test::only_fault;
using test::plan_of;
using test::set_up;
using test::tree_text;
using test::write_config;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PlanRequest verbs() {
  PlanRequest request;
  request.transport = Transport::kVerbs;
  return request;
}

// Formats "mlx5_1 10.77.1.5/24 0000:19:00.0".
std::vector<std::string> devices_of(const Plan& plan) {
  std::vector<std::string> devices;
  if (plan.fabric)
    for (const config::Nic& nic : plan.fabric->nics)
      devices.push_back(nic.device + " " + to_string(nic.address) +
                        (nic.gpu_pci.empty() ? "" : " " + nic.gpu_pci));
  return devices;
}

std::string unfit_of_device(const Plan& plan, std::string_view device) {
  for (const config::HostNic& nic : plan.topology.nics)
    if (nic.rdma && nic.rdma->device == device) return nic.unfit;
  return "no such device";
}

std::string with(const std::string& more) { return tree_text("rdma") + more + "\n"; }
std::string rdma_file(const char* device, const char* file, const char* text) {
  return std::string("file path=sys/class/infiniband/") + device + "/" + file + " text=" + text +
         "\\n\n";
}

// --- Choice of ports -----------------------------------------------------------------------------

TEST(ChooseRdma, EachGpuHasThePortBehindItsSwitch) {
  FakeHost host(tree_text("rdma"));
  const Plan plan = plan_of(host, verbs());
  ASSERT_TRUE(plan.fabric && plan.verbs) << to_text(plan, {});
  EXPECT_THAT(devices_of(plan),
              ElementsAre("mlx5_1 10.77.1.5/24 0000:19:00.0", "mlx5_2 10.77.2.5/24 0000:45:00.0"));
  EXPECT_EQ(plan.pairs[0].reason, "same PCI switch");
  EXPECT_EQ(plan.fabric->nics[0].speed_mbps, 0U) << "the port tells, now and later";
  EXPECT_EQ(plan.fabric->nics[0].gid_index, -1) << "chosen anew by each process";
  EXPECT_EQ(unfit_of_device(plan, "mlx5_0"),
            "has 25000 Mb/s, another has 400000; --take mlx5_0 uses it all the same");
  EXPECT_EQ(unfit_of_device(plan, "rxe0"), "has port 1 DOWN");
  EXPECT_EQ(exit_code(plan), kExitGood);
  const std::string text = to_text(plan, {});
  EXPECT_THAT(text, HasSubstr("mlx5_1 port 1  Ethernet  ens1       10.77.1.5 (RoCE v2)"));
  EXPECT_THAT(text, HasSubstr("Transport: RDMA devices for the whole host (--transport verbs)"));
  EXPECT_THAT(text, HasSubstr("GPUDirect RDMA: by DMA-BUF"));
  EXPECT_THAT(text, HasSubstr("rxe0 eth0 is not used: it has port 1 DOWN"));
  EXPECT_THAT(text, Not(HasSubstr("Hugepages")));
}

TEST(ChooseRdma, OnlyTheConfigIsWrittenAndItLoads) {
  FakeHost host(tree_text("rdma"));
  const DryRun run = dry_run_of(host, verbs());
  ASSERT_EQ(run.changes.size(), 1U);
  EXPECT_EQ(run.changes[0].what, "the config");
  const auto loaded = config::parse(to_toml(*run.plan.fabric), run.plan.fabric->path);
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  EXPECT_EQ(*loaded.fabric, *run.plan.fabric);
}

TEST(ChooseRdma, ASecondRunChangesNothing) {
  FakeHost host(tree_text("rdma"));
  config::Fabric fabric = *plan_of(host, verbs()).fabric;
  fabric.nics[1].gid_index = 1;
  fabric.nics[1].traffic_class = 106;
  fabric.nics[1].first_port = 9000;
  fabric.nics[1].last_port = 9010;
  write_config(host, fabric);
  const DryRun again = dry_run_of(host);
  ASSERT_TRUE(again.plan.verbs) << "the config has it";
  EXPECT_EQ(again.plan.verbs->why, "as in the config");
  EXPECT_EQ(*again.plan.fabric, fabric);
  EXPECT_THAT(again.changes, IsEmpty());
}

TEST(ChooseRdma, AddedDevicesFollowTheOthers) {
  FakeHost host(tree_text("rdma"));
  PlanRequest request = verbs();
  request.selection.keep = {"mlx5_1"};
  write_config(host, *plan_of(host, request).fabric);
  PlanRequest add;
  add.mode = Mode::kAdd;
  const Plan plan = plan_of(host, add);
  ASSERT_TRUE(plan.verbs) << to_text(plan, {});
  EXPECT_THAT(devices_of(plan),
              ElementsAre("mlx5_2 10.77.2.5/24 0000:45:00.0", "mlx5_1 10.77.1.5/24 0000:19:00.0"));
  EXPECT_EQ(plan.fabric->nics[0].name, "ztcp0");
  EXPECT_EQ(plan.fabric->nics[1].name, "ztcp1");
}

TEST(ChooseRdma, KeepAndTakeSelectDevicesByName) {
  FakeHost host(tree_text("rdma"));
  PlanRequest request = verbs();
  request.selection.take = {"mlx5_0"};
  request.selection.keep = {"ens2"};
  const Plan plan = plan_of(host, request);
  EXPECT_THAT(devices_of(plan),
              ElementsAre("mlx5_0 10.0.0.5/24 0000:45:00.0", "mlx5_1 10.77.1.5/24 0000:19:00.0"));
  EXPECT_EQ(unfit_of_device(plan, "mlx5_2"), "was named by --keep");
  request.selection.keep = {"mlx5_9"};
  const config::Problem unknown = only_fault(plan_of(host, request)).problem;
  EXPECT_THAT(unknown.where, HasSubstr("--keep mlx5_9"));
  EXPECT_THAT(unknown.what, HasSubstr("no RDMA device or NIC on PCI has this name or address; "
                                      "there are: mlx5_0 eth0, mlx5_1 ens1, mlx5_2 ens2, rxe0"));
}

TEST(ChooseRdma, APortSharedByGpusIsPairedWithNone) {
  FakeHost host(tree_text("rdma"));
  PlanRequest request = verbs();
  request.selection.keep = {"mlx5_2"};
  const Plan plan = plan_of(host, request);
  EXPECT_THAT(devices_of(plan), ElementsAre("mlx5_1 10.77.1.5/24"));
  ASSERT_EQ(plan.pairs.size(), 2U);
  EXPECT_EQ(plan.pairs[1].nic, plan.pairs[0].nic);
}

TEST(ChooseRdma, UnusableDevicesAreLeftOutWithTheReason) {
  FakeHost host(with(rdma_file("mlx5_1", "node_type", "6: usNIC UDP") +
                     rdma_file("mlx5_0", "ports/1/rate", "400 Gb/sec (4X NDR)")));
  const Plan plan = plan_of(host, verbs());
  EXPECT_THAT(unfit_of_device(plan, "mlx5_1"), HasSubstr("has no reliable connections"));
  EXPECT_THAT(unfit_of_device(plan, "mlx5_0"), HasSubstr("carries the default route"));
  EXPECT_THAT(devices_of(plan), ElementsAre("mlx5_2 10.77.2.5/24"));
}

// Its queue pairs use its own interface, so no other address works.
TEST(ChooseRdma, IwarpUsesAnAddressOfItsOwnInterface) {
  const auto iwarp = [](const char* mac) {
    return rdma_file("mlx5_1", "node_type", "4: RNIC") +
           rdma_file("mlx5_1", "ports/1/gids/0", mac) +
           rdma_file("mlx5_1", "ports/1/gid_attrs/ndevs/0", "") +
           "file path=sys/class/net/ens1/address text=02:00:00:00:00:07\\n\n"
           "file path=sys/class/net/ens1/iflink text=3\\n\n"
           "file path=sys/class/net/ens1/ifindex text=3\\n\n";
  };
  FakeHost host(with(iwarp("0200:0000:0007:0000:0000:0000:0000:0000")));
  const Plan plan = plan_of(host, verbs());
  EXPECT_THAT(devices_of(plan),
              ElementsAre("mlx5_1 10.77.1.5/24 0000:19:00.0", "mlx5_2 10.77.2.5/24 0000:45:00.0"));
  EXPECT_THAT(to_text(plan, {}), HasSubstr("iWARP"));
}

TEST(ChooseRdma, AnInvalidNameLeavesOutThatDeviceOnly) {
  const char* const odd = "mlx5;x";
  FakeHost host(with(rdma_file(odd, "ports/1/state", "4: ACTIVE") +
                     rdma_file(odd, "ports/1/rate", "400 Gb/sec (4X NDR)") +
                     rdma_file(odd, "ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:0a4d:0205") +
                     rdma_file(odd, "ports/1/gid_attrs/types/0", "RoCE v2") +
                     rdma_file(odd, "ports/1/gid_attrs/ndevs/0", "ens2")));
  const Plan plan = plan_of(host, verbs());
  EXPECT_EQ(exit_code(plan), kExitGood) << to_text(plan, {});
  EXPECT_THAT(unfit_of_device(plan, odd), HasSubstr("sudo rdma dev set 'mlx5;x' name NAME"));
  EXPECT_THAT(devices_of(plan),
              ElementsAre("mlx5_1 10.77.1.5/24 0000:19:00.0", "mlx5_2 10.77.2.5/24 0000:45:00.0"));
}

TEST(ChooseRdma, InfiniBandWithoutAnAddressUsesTheDefaultRoutesAddress) {
  FakeHost host(
      with(rdma_file("mlx5_2", "ports/1/link_layer", "InfiniBand") +
           rdma_file("mlx5_2", "ports/1/gids/1", "fe80:0000:0000:0000:0002:c903:0000:0001") +
           rdma_file("mlx5_2", "ports/1/gid_attrs/ndevs/1", "ib0")));
  PlanRequest request = verbs();
  request.selection.keep = {"mlx5_1"};
  const Plan plan = plan_of(host, request);
  EXPECT_THAT(devices_of(plan), ElementsAre("mlx5_2 10.0.0.5/24")) << to_text(plan, {});
}

TEST(ChooseRdma, AMissingDeviceIsReportedAndTheOthersStay) {
  FakeHost host(tree_text("rdma"));
  config::Fabric fabric = *plan_of(host, verbs()).fabric;
  fabric.nics[0].device = "mlx5_7";
  write_config(host, fabric);
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.fabric);
  EXPECT_THAT(plan.notes.front().problem.what,
              HasSubstr("the config has it on port 1 of mlx5_7, which is gone"));
  EXPECT_EQ(plan.fabric->nics.size(), 2U);
}

TEST(ChooseRdma, WithoutAUsableDeviceItIsRefused) {
  FakeHost none(tree_text("cloud-flat"));
  EXPECT_THAT(only_fault(plan_of(none, verbs())).problem.what, HasSubstr("no RDMA device"));
  FakeHost host(tree_text("rdma"));
  PlanRequest request = verbs();
  request.selection.keep = {"mlx5_0", "mlx5_1", "mlx5_2"};
  EXPECT_THAT(only_fault(plan_of(host, request)).problem.what,
              HasSubstr("no RDMA device is usable; mlx5_0 was named by --keep"));
  EXPECT_THAT(to_text(plan_of(host, request), {}), HasSubstr("RDMA  rxe0          eth0 "));
}

// --- Other transports ----------------------------------------------------------------------------

TEST(ChooseRdma, UnusedDevicesAreReported) {
  FakeHost host(tree_text("rdma"));
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.sockets) << "mlx5 never gives its NICs away";
  EXPECT_THAT(to_text(plan, {}),
              HasSubstr("Unused RDMA devices: mlx5_0 port 1 (Ethernet, 25000 "
                        "Mb/s, eth0), mlx5_1 port 1 (Ethernet, 400000 Mb/s, ens1), mlx5_2 port 1 "
                        "(Ethernet, 400000 Mb/s, ens2); sudo ztcp_setup --transport verbs"));
}

TEST(ChooseRdma, AHostMayChangeBetweenRdmaAndSockets) {
  FakeHost host(tree_text("rdma"));
  ASSERT_TRUE(set_up(host, plan_of(host, verbs()).resources).complete());
  PlanRequest sockets;
  sockets.transport = Transport::kSockets;
  const Plan changed = plan_of(host, sockets);
  ASSERT_TRUE(changed.sockets && changed.fabric) << to_text(changed, {});
  EXPECT_EQ(exit_code(changed), kExitGood) << to_text(changed, {});
  ASSERT_TRUE(set_up(host, changed.resources).complete());
  EXPECT_EQ(exit_code(plan_of(host, verbs())), kExitGood);
}

TEST(ChooseRdma, AddingKeepsTheConfigsTransport) {
  for (const Transport other : {Transport::kUstack, Transport::kSockets}) {
    FakeHost host(tree_text("rdma"));
    ASSERT_TRUE(set_up(host, plan_of(host, verbs()).resources).complete());
    PlanRequest request;
    request.transport = other;
    request.mode = Mode::kAdd;
    const Plan plan = plan_of(host, request);
    ASSERT_TRUE(plan.has_faults());
    EXPECT_EQ(plan.notes[0].problem.what,
              "differs from the config: its NICs have driver = \"verbs\"");
    EXPECT_THAT(to_text(plan, {}), Not(HasSubstr("no NIC at  now")));
    request.transport = Transport::kVerbs;
    EXPECT_EQ(exit_code(plan_of(host, request)), kExitGood);
  }
}

// --- Resources -----------------------------------------------------------------------------------

TEST(ChooseRdma, MembersOfAGroupMayLockMemory) {
  FakeHost host(tree_text("rdma"));
  const FakeHost::State bare = host.state;
  PlanRequest request = verbs();
  request.group = "ztcp";
  const DryRun run = dry_run_of(host, request);
  ASSERT_EQ(run.changes.size(), 2U);
  EXPECT_EQ(run.changes[0].what, "unlimited locked memory for sessions of group ztcp");
  ASSERT_TRUE(set_up(host, run.plan.resources).complete());
  EXPECT_THAT(host.state.nodes["/etc/security/limits.d/ztcp.conf"].text,
              HasSubstr("@ztcp - memlock unlimited"));
  EXPECT_THAT(dry_run_of(host).changes, IsEmpty());
  EXPECT_TRUE(test::undo(host).complete());
  test::expect_same(host.state, bare);
}

TEST(ChooseRdma, ThePeerMemoryModuleIsLoadedWithoutDmaBuf) {
  const std::string closed =
      "file path=proc/driver/nvidia/version text=NVRM version: NVIDIA UNIX x86_64 Kernel Module\n";
  const std::string at_hand =
      "file path=lib/modules/6.1.0-26-amd64/modules.dep text=updates/dkms/nvidia-peermem.ko: x\n"
      "file path=lib/modules/6.1.0-26-amd64/modules.symbols text=alias "
      "symbol:ib_register_peer_memory_client ib_core\n";
  FakeHost without(with(closed));
  EXPECT_EQ(dry_run_of(without, verbs()).changes.size(), 1U) << "there is none to load";
  EXPECT_THAT(to_text(plan_of(without, verbs()), {}),
              HasSubstr("GPUDirect RDMA: off: DMA-BUFs need NVIDIA's open kernel module"));
  FakeHost open(with(at_hand));
  EXPECT_EQ(dry_run_of(open, verbs()).changes.size(), 1U) << "DMA-BUFs do";

  FakeHost old(
      with(closed + at_hand + "file path=sys/kernel/mm/memory_peers/nv_mem/version text=1.3\n"));
  EXPECT_EQ(dry_run_of(old, verbs()).changes.size(), 1U) << "nv_peer_mem does";

  FakeHost host(with(closed + at_hand));
  const DryRun run = dry_run_of(host, verbs());
  ASSERT_EQ(run.changes.size(), 3U);
  ASSERT_TRUE(set_up(host, run.plan.resources).complete());
  EXPECT_TRUE(host.state.modules.contains("nvidia_peermem"));
  EXPECT_THAT(host.state.nodes["/etc/modules-load.d/ztcp.conf"].text,
              HasSubstr("nvidia_peermem\n"));
  EXPECT_THAT(dry_run_of(host).changes, IsEmpty()) << "loaded by now, and still wanted";
  EXPECT_TRUE(test::undo(host).complete());
  EXPECT_FALSE(host.state.modules.contains("nvidia_peermem"));
}

}  // namespace
}  // namespace ztcp::setup
