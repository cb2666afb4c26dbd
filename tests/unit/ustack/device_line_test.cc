// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/device_line.h"

#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/memif_fabric.h"

namespace ztcp::ustack {
namespace {

using test::memif_fabric;

std::string line_of(const config::Fabric& fabric, std::size_t lanes = 1, const char* reason = "") {
  DeviceProperties device;
  device.name = "ztcp0";
  device.speed_mbps = 25000;
  plan::DevicePlan plan;
  plan.lanes.resize(lanes);
  plan.lanes_reason = reason;
  plan.helpers = 2;
  plan.helpers_reason = "26 CPUs to spare";
  return device_line(fabric, fabric.nics[0], device, plan);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(DeviceLine, NamesTheNicAndItsProperties) {
  const std::string line = line_of(memif_fabric());
  for (const char* part :
       {"ztcp0: userspace TCP", "memif /run/ztcp.sock 3", "10.77.1.10/24", "25000 Mb/s", "any GPU",
        "NUMA node unknown", "MTU 9000", "no hugepages", "sends copy once", "GPUDirect RDMA off"})
    EXPECT_TRUE(contains(line, part)) << part << " in " << line;
}

TEST(DeviceLine, NamesAMeshAsSuch) {
  config::Fabric fabric = memif_fabric();
  fabric.nics[0].memif_role = config::MemifRole::kMesh;
  fabric.nics[0].memif_socket = "/run/mesh";
  EXPECT_TRUE(contains(line_of(fabric), "userspace TCP, mesh /run/mesh, ")) << line_of(fabric);
}

TEST(DeviceLine, CallsAnUnknownSpeedAGuess) {
  config::Fabric fabric = memif_fabric();
  fabric.nics[0].speed_mbps = 0;
  EXPECT_TRUE(contains(line_of(fabric), "Mb/s (a guess: speed_mbps is 0 in the config)"))
      << line_of(fabric);
  fabric.nics[0].driver = config::NicDriver::kPci;
  EXPECT_TRUE(contains(line_of(fabric), "ztcp_setup --speed MBPS states it")) << line_of(fabric);
}

TEST(DeviceLine, HasTheNumberOfWorkersAndTheReason) {
  EXPECT_TRUE(contains(line_of(memif_fabric()), ", 1 lane, 2 workers (26 CPUs to spare), "));
}

TEST(DeviceLine, HasTheNumberOfQueuesAndTheReason) {
  const config::Fabric fabric = memif_fabric();
  EXPECT_TRUE(contains(line_of(fabric), ", 1 lane, ")) << line_of(fabric);
  const std::string two = line_of(fabric, 2, "auto: 4 for 100000 Mb/s");
  EXPECT_TRUE(contains(two, ", up to 2 lanes (auto: 4 for 100000 Mb/s), ")) << two;
}

TEST(DeviceLine, HasVlanAndDscpWhereTheyAreSet) {
  config::Fabric fabric = memif_fabric();
  EXPECT_TRUE(contains(line_of(fabric), ", MTU 9000, 1 lane, ")) << line_of(fabric);
  fabric.nics[0].vlan_id = 7;
  fabric.nics[0].dscp = 46;
  EXPECT_TRUE(contains(line_of(fabric), ", MTU 9000, VLAN 7, DSCP 46, ")) << line_of(fabric);
  fabric.nics[0].vlan_priority = 0;
  EXPECT_TRUE(contains(line_of(fabric), ", VLAN 7 priority 0, DSCP 46, ")) << line_of(fabric);
}

struct LineCase {
  const char* name;
  config::NicDriver driver;
  config::HostClass host_class;
  const char* expected;
};

class DeviceLineOf : public testing::TestWithParam<LineCase> {};

TEST_P(DeviceLineOf, HasTheReasonForEachFeatureThatIsOff) {
  config::Fabric fabric = memif_fabric();
  config::Nic& nic = fabric.nics[0];
  nic.driver = GetParam().driver;
  nic.pci = "0000:3b:00.0";
  nic.tap_interface = "ztap0";
  nic.gpu_pci = "0000:17:00.0";
  nic.numa_node = 1;
  fabric.host.host_class = GetParam().host_class;
  fabric.hugepages.page_kib = 2048;
  const std::string line = line_of(fabric);
  EXPECT_FALSE(contains(line, "a guess")) << line;
  EXPECT_TRUE(contains(line, GetParam().expected)) << line;
  EXPECT_TRUE(contains(line, "GPU 0000:17:00.0, NUMA node 1")) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, DeviceLineOf,
    testing::Values(
        LineCase{
            "iommu", config::NicDriver::kPci, config::HostClass::kIommu,
            "2 MiB pages, at most 5120 MiB for each GPU of a process; kernel bypass, zero-copy"},
        LineCase{"no_iommu", config::NicDriver::kPci, config::HostClass::kNoIommu,
                 "without an IOMMU user pages may move"},
        LineCase{"tap", config::NicDriver::kTap, config::HostClass::kUnprivileged,
                 "kernel bypass off"},
        LineCase{"mlx5", config::NicDriver::kMlx5, config::HostClass::kUnprivileged,
                 "2 MiB pages, at most 5120 MiB for each GPU of a process; kernel bypass for "
                 "ztcp's TCP ports; the interface stays with the kernel"},
        LineCase{"xdp", config::NicDriver::kXdp, config::HostClass::kUnprivileged,
                 "kernel bypass for ztcp's TCP ports; the interface stays with the kernel"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace ztcp::ustack
