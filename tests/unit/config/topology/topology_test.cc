// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Pairing on machines that came along as trees.
#include "config/topology/topology.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology detect_tree(const test::Tree& tree, const Selection& selection = {}) {
  LiveMachine machine(tree.root());
  auto topology = detect(machine, tree.root(), tree.network(), selection);
  EXPECT_TRUE(topology) << to_string(topology.error());
  return topology ? *topology : Topology{};
}
Topology detect_tree(const char* name) {
  return detect_tree(test::Tree(test::Tree::read(std::string(ZTCP_TREES) + "/" + name + ".tree")));
}

// "interface of GPU 0", "of GPU 1", ...
std::vector<std::string> rails(const Topology& topology) {
  std::vector<std::string> names;
  const auto pairs = assign(topology);
  EXPECT_TRUE(pairs) << to_string(pairs.error());
  if (pairs)
    for (const Pair& pair : *pairs) names.push_back(topology.nics[pair.nic].interface);
  return names;
}

TEST(Topology, ReadsGpusAndNicsOfAServer) {
  const Topology topology = detect_tree("server-8gpu-9nic");
  ASSERT_EQ(topology.gpus.size(), 8U);  // Not the management controller's display.
  ASSERT_EQ(topology.nics.size(), 9U);
  EXPECT_THAT(topology.numa_nodes, ElementsAre(0, 1));
  EXPECT_EQ(topology.gpus[0].pci, "0000:19:00.0");
  EXPECT_EQ(topology.gpus[0].model, "NVIDIA H800");
  EXPECT_EQ(topology.gpus[7].uuid, "GPU-00000000-0000-0000-0000-000000000007");
  EXPECT_EQ(topology.gpus[7].numa_node, 1);
  const HostNic& management = topology.nics[0];
  EXPECT_EQ(management.interface, "eno1");
  EXPECT_EQ(management.unfit, "carries the default route");
  const HostNic& nic = topology.nics[1];
  EXPECT_EQ(nic.pci, "0000:1b:00.0");
  EXPECT_EQ(nic.driver, "bnxt_en");
  EXPECT_EQ(to_string(nic.mac), "bc:97:e1:00:00:00");
  EXPECT_EQ(nic.mtu_bytes, 9000U);
  EXPECT_EQ(nic.speed_mbps, 200000U);
  EXPECT_EQ(nic.iommu_group, "40");
  EXPECT_TRUE(nic.protects);
  EXPECT_EQ(nic.unfit, "");
}

// A cluster may tell its jobs' hwloc of another machine, and --check runs inside a job.
TEST(Topology, IsReadFromTheMachineWhateverTheEnvironmentSays) {
  for (const auto& [name, value] : {std::pair{"HWLOC_SYNTHETIC", "node:1 core:2 pu:1"},
                                    std::pair{"HWLOC_XMLFILE", "/nonexistent.xml"},
                                    std::pair{"HWLOC_CPUID_PATH", "/nonexistent"}}) {
    ::setenv(name, value, 1);
    EXPECT_EQ(detect_tree("server-8gpu-9nic").gpus.size(), 8U) << name;
    ::unsetenv(name);
  }
}

TEST(Topology, MeasuresDistanceInAServer) {
  const Topology topology = detect_tree("server-8gpu-9nic");
  EXPECT_EQ(topology.distances[0][1].nearness, Nearness::kSwitch);
  EXPECT_EQ(topology.distances[0][3].nearness, Nearness::kNumaNode);  // Other switch, same socket.
  EXPECT_EQ(topology.distances[0][5].nearness, Nearness::kMachine);   // Other socket.
}

TEST(Topology, TakesTheKernelsAddresses) {
  const Topology topology = detect_tree("cloud-flat");
  ASSERT_EQ(topology.nics.size(), 9U);
  EXPECT_EQ(topology.nics[3].interface, "eth3");
  EXPECT_EQ(topology.nics[3].address, parse_ipv4_prefix("10.77.3.5/24"));
  EXPECT_FALSE(topology.nics[0].address);
}

TEST(Assign, GivesEachGpuTheNicBehindItsSwitch) {
  EXPECT_THAT(
      rails(detect_tree("server-8gpu-9nic")),
      ElementsAre("ens1f0", "ens2f0", "ens3f0", "ens4f0", "ens5f0", "ens6f0", "ens7f0", "ens8f0"));
}

TEST(Assign, BreaksTiesOfAFlatTreeByNumaNodeThenDeviceOrder) {
  const Topology topology = detect_tree("cloud-flat");
  EXPECT_THAT(rails(topology),
              ElementsAre("eth5", "eth6", "eth7", "eth8", "eth1", "eth2", "eth3", "eth4"));
  const auto pairs = assign(topology);
  EXPECT_EQ((*pairs)[0].reason, "same PCI host bridge, then NUMA node 0 and device order");
}

TEST(Share, GivesEachGpuTheNearestAndSpreadsThemOverEqualOnes) {
  Topology server = detect_tree("server-8gpu-9nic");
  for (std::size_t nic = 0; nic < server.nics.size(); ++nic)
    server.nics[nic].unfit = nic == 1 || nic == 8 ? "" : "is not used here";
  const auto near = share_nics(server);
  ASSERT_EQ(near.size(), 8U);
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(near[gpu].gpu, gpu);
    EXPECT_EQ(near[gpu].nic, gpu < 4 ? 1U : 8U) << "that of its NUMA node";
  }
  EXPECT_EQ(near[0].reason, "same PCI switch");

  const auto equal = share_nics(detect_tree("too-few-nics"));
  ASSERT_EQ(equal.size(), 4U);
  EXPECT_EQ(equal[3].nic, 1U) << "the only one that can be had";

  Topology cloud = detect_tree("cloud-flat");
  cloud.gpus.resize(1);
  const auto idle = share_nics(cloud);
  EXPECT_EQ(idle.size(), 8U) << "one for the GPU, and seven more";
  EXPECT_EQ(idle[7].gpu, std::nullopt);
  cloud.gpus.clear();
  EXPECT_EQ(share_nics(cloud)[0].reason, "device order");
}

TEST(Assign, WithoutGpusThereIsNothingToPair) {
  const Topology topology = detect_tree("no-gpu");
  EXPECT_EQ(topology.nics.size(), 2U);
  const auto pairs = assign(topology);
  ASSERT_FALSE(pairs);
  EXPECT_THAT(pairs.error().what, HasSubstr("no NVIDIA GPU"));
  EXPECT_THAT(pairs.error().mend, HasSubstr("ztcp_setup --nics all"));
}

TEST(Assign, RefusesTooFewNicsAndSaysWhyEachIsUnfit) {
  const auto pairs = assign(detect_tree("too-few-nics"));
  ASSERT_FALSE(pairs);
  EXPECT_THAT(pairs.error().what,
              HasSubstr("4 GPUs need 4 NICs of their own, 1 of 3 can be had; ens5 carries the "
                        "default route; ens7 belongs to bond0"));
  EXPECT_THAT(pairs.error().mend, HasSubstr("attach 3 more"));
}

// --- Small machines ------------------------------------------------------------------------------

constexpr const char* kSmall =
    "node id=0 cpus=0-1 memory_mib=1024\n"
    "pci path=pci0000:00/0000:00:08.0 id=10de:20b2 class=030200 numa=0\n";

Topology small(const std::string& more) { return detect_tree(test::Tree(kSmall + more)); }

TEST(Topology, KnowsAnIpv6DefaultRoute) {
  const Topology topology = small(
      "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=ena\n"
      "net path=pci0000:00/0000:00:05.0 name=ens5 mac=02:00:00:00:00:05 mtu=9001 speed=-1\n"
      "route if=ens5 ipv6=1");
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].unfit, "carries the default route");
  EXPECT_EQ(topology.nics[0].speed_mbps, 0U);
}

TEST(Topology, FollowsADefaultRouteThroughABond) {
  const Topology topology = small(
      "pci path=pci0000:00/0000:00:05.0 id=1d0f:ec20 class=020000 numa=0 driver=ena\n"
      "net path=pci0000:00/0000:00:05.0 name=ens5 mac=02:00:00:00:00:05 mtu=9001 speed=-1\n"
      "link path=sys/class/net/bond0/lower_ens5 to=../ens5\n"
      "route if=bond0 via=10.0.0.1");
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].unfit, "carries the default route");
}

TEST(Topology, NamesDriversItCantTakeOver) {
  const Topology topology = small(
      "pci path=pci0000:00/0000:00:05.0 id=15b3:101e class=020000 numa=0 driver=mlx5_core\n"
      "net path=pci0000:00/0000:00:05.0 name=ens5 mac=02:00:00:00:00:05 mtu=9000 speed=100000\n");
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].unfit,
            "stays with mlx5_core, which never gives a NIC away; ztcp's TCP can't use it yet");
}

TEST(Topology, ANicThatIsTakenAlreadyStaysUsable) {
  const Topology topology = small(
      "pci path=pci0000:00/0000:00:05.0 id=1af4:1000 class=020000 numa=0 driver=vfio-pci group=7");
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].unfit, "");
  EXPECT_EQ(topology.nics[0].interface, "");
  EXPECT_EQ(assign(topology)->size(), 1U);
}

// GPU 1 shares a switch with the first NIC, GPU 0 with none: device order alone would rob it.
TEST(Assign, NearPairsComeBeforeDeviceOrder) {
  const Topology topology = detect_tree(test::Tree(
      "node id=0 cpus=0-1 memory_mib=1024\n"
      "pci path=pci0000:00/0000:00:08.0 id=10de:20b2 class=030200 numa=0\n"
      "bridge path=pci0000:10/0000:10:00.0 numa=0 buses=11-12\n"
      "pci path=pci0000:10/0000:10:00.0/0000:11:00.0 id=1d0f:ec20 class=020000 numa=0 driver=ena\n"
      "pci path=pci0000:10/0000:10:00.0/0000:11:01.0 id=10de:20b2 class=030200 numa=0\n"
      "pci path=pci0000:20/0000:20:00.0 id=1d0f:ec20 class=020000 numa=0 driver=ena\n"));
  const auto pairs = assign(topology);
  ASSERT_TRUE(pairs);
  EXPECT_EQ(topology.nics[(*pairs)[0].nic].pci, "0000:20:00.0");
  EXPECT_EQ(topology.nics[(*pairs)[1].nic].pci, "0000:11:00.0");
  EXPECT_EQ((*pairs)[1].reason, "same PCI switch");
}

}  // namespace
}  // namespace ztcp::config
