// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Pairing of GPUs and NICs, on machines that are stored as trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/topology/detect_tree.h"

namespace ztcp::config {
namespace {

using test::detect_tree;
using testing::ElementsAre;
using testing::HasSubstr;

// The interfaces of GPU 0, of GPU 1, ...
std::vector<std::string> rails(const Topology& topology) {
  std::vector<std::string> names;
  const auto pairs = assign(topology);
  EXPECT_TRUE(pairs) << to_string(pairs.error());
  if (pairs)
    for (const Pair& pair : *pairs) names.push_back(topology.nics[pair.nic].interface);
  return names;
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
              HasSubstr("4 GPUs need 4 NICs of their own, 1 of 3 are usable; ens5 carries the "
                        "default route; ens7 belongs to bond0"));
  EXPECT_THAT(pairs.error().mend, HasSubstr("attach 3 more"));
}

// GPU 1 shares a switch with the first NIC, GPU 0 with none: device order would give that NIC to
// GPU 0.
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
