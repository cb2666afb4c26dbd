// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/mesh.h"

#include <map>

#include <gtest/gtest.h>

namespace ztcp::config {
namespace {

Nic mesh_nic(const char* name, const char* socket = "/run/mesh") {
  Nic nic;
  nic.name = name;
  nic.driver = NicDriver::kMemif;
  nic.memif_role = MemifRole::kMesh;
  nic.memif_socket = socket;
  return nic;
}

TEST(MeshPeers, BothSidesUseTheSameSocketAndOneServes) {
  Fabric fabric;
  // Sorted by name, not by place in the file: "ztcp10" is before "ztcp2".
  fabric.nics = {mesh_nic("ztcp2"), mesh_nic("ztcp10")};
  const auto here = mesh_peers(fabric, fabric.nics[0]);
  const auto there = mesh_peers(fabric, fabric.nics[1]);
  ASSERT_EQ(here.size(), 1U);
  ASSERT_EQ(there.size(), 1U);
  EXPECT_EQ(here[0].nic, &fabric.nics[1]);
  EXPECT_EQ(here[0].sockets, std::vector<std::string>{"/run/mesh+ztcp10+ztcp2+0"});
  EXPECT_EQ(there[0].sockets, here[0].sockets);
  EXPECT_FALSE(here[0].serves);
  EXPECT_TRUE(there[0].serves);
}

TEST(MeshPeers, EachQueueHasASocket) {
  Fabric fabric;
  fabric.nics = {mesh_nic("a"), mesh_nic("b")};
  for (Nic& nic : fabric.nics) nic.queues = 3;
  EXPECT_EQ(mesh_peers(fabric, fabric.nics[0])[0].sockets,
            (std::vector<std::string>{"/run/mesh+a+b+0", "/run/mesh+a+b+1", "/run/mesh+a+b+2"}));
}

// Names of NICs may contain dashes and numbers.
TEST(MeshPeers, NoTwoPairsOrQueuesShareASocket) {
  Fabric fabric;
  for (const char* name : {"a", "b", "a-b", "b-c", "c", "b-1", "b.1", "1"})
    fabric.nics.push_back(mesh_nic(name));
  for (Nic& nic : fabric.nics) nic.queues = 3;
  std::map<std::string, int> ends;
  for (const Nic& nic : fabric.nics)
    for (const MeshPeer& peer : mesh_peers(fabric, nic))
      for (const std::string& socket : peer.sockets) ++ends[socket];
  for (const auto& [socket, count] : ends) EXPECT_EQ(count, 2) << socket;
}

TEST(MeshPeers, NicsOfOtherMeshesAreNoPeers) {
  Fabric fabric;
  fabric.nics = {mesh_nic("a"), mesh_nic("b", "/run/other"), mesh_nic("c"), mesh_nic("d")};
  fabric.nics[2].memif_role = MemifRole::kClient;
  fabric.nics[3].driver = NicDriver::kTap;
  EXPECT_TRUE(mesh_peers(fabric, fabric.nics[0]).empty());
  EXPECT_TRUE(mesh_peers(fabric, fabric.nics[2]).empty());
}

}  // namespace
}  // namespace ztcp::config
