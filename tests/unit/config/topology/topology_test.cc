// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Topologies of machines that are stored as trees.
#include "config/topology/topology.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"
#include "tests/unit/config/topology/detect_tree.h"

namespace ztcp::config {
namespace {

using test::detect_tree;
using testing::ElementsAre;

TEST(Topology, ReadsGpusAndNicsOfAServer) {
  const Topology topology = detect_tree("server-8gpu-9nic");
  ASSERT_EQ(topology.gpus.size(), 8U);  // Without the management controller's display.
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

// A cluster may give its jobs' hwloc another topology, and --check runs inside a job.
TEST(Topology, IsReadFromTheMachineInsteadOfTheEnvironment) {
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

TEST(Topology, NamesDriversItCannotTakeOver) {
  const Topology topology = small(
      "pci path=pci0000:00/0000:00:05.0 id=15b3:101e class=020000 numa=0 driver=mlx5_core\n"
      "net path=pci0000:00/0000:00:05.0 name=ens5 mac=02:00:00:00:00:05 mtu=9000 speed=100000\n");
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].unfit,
            "has the driver mlx5_core, which keeps its NICs; --transport mlx5 shares them");
}

TEST(Topology, ATakenNicStaysUsable) {
  const Topology topology = small(
      "pci path=pci0000:00/0000:00:05.0 id=1af4:1000 class=020000 numa=0 driver=vfio-pci group=7");
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].unfit, "");
  EXPECT_EQ(topology.nics[0].interface, "");
  EXPECT_EQ(assign(topology)->size(), 1U);
}

}  // namespace
}  // namespace ztcp::config
