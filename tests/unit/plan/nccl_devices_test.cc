// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/plan/nccl_devices.h"

#include <gtest/gtest.h>

namespace ztcp::plan {
namespace {

TEST(NcclDevices, TheConfigsNumberIsUsed) {
  EXPECT_EQ(nccl_devices({.told = 3, .tunes_channels = false, .interfaces = 1}), 3U);
  EXPECT_EQ(nccl_devices({.told = 1, .tunes_channels = true, .interfaces = 1}), 1U);
  EXPECT_EQ(nccl_devices({.told = 4}), 4U);
}

TEST(NcclDevices, WithoutTheTunerEachNicIsOne) {
  EXPECT_EQ(nccl_devices({.interfaces = 1}), 1U);
  EXPECT_EQ(nccl_devices({.mesh_peers = 1, .mesh_queues = 6}), 1U);
}

TEST(NcclDevices, InterfacesTogetherAreEight) {
  EXPECT_EQ(nccl_devices({.tunes_channels = true, .interfaces = 1}), 8U);
  EXPECT_EQ(nccl_devices({.tunes_channels = true, .interfaces = 2}), 4U);
  EXPECT_EQ(nccl_devices({.tunes_channels = true, .interfaces = 3}), 1U);
  EXPECT_EQ(nccl_devices({.tunes_channels = true, .interfaces = 16}), 1U);
}

TEST(NcclDevices, MeshNicsAreSeveralWhereTheConfigGivesThemQueues) {
  const auto of = [](std::size_t peers, std::uint32_t queues) {
    return nccl_devices({.tunes_channels = true, .mesh_peers = peers, .mesh_queues = queues});
  };
  EXPECT_EQ(of(1, 3), 1U);
  EXPECT_EQ(of(1, 4), 8U);
  EXPECT_EQ(of(2, 1), 1U);
  EXPECT_EQ(of(2, 2), 2U);
  EXPECT_EQ(of(2, 3), 4U);
}

TEST(NcclDevices, NicOnPciIsOne) { EXPECT_EQ(nccl_devices({.tunes_channels = true}), 1U); }

}  // namespace
}  // namespace ztcp::plan
