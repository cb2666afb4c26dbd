// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/rdma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<RdmaPort>& ports) {
  std::vector<std::string> names;
  for (const RdmaPort& port : ports) names.push_back(port.device + " " + std::to_string(port.port));
  return names;
}

std::string state(const std::string& device, int port = 1) {
  return "file path=sys/class/infiniband/" + device + "/ports/" + std::to_string(port) +
         "/state text=4: ACTIVE\\n\n";
}
std::string on_pci(const std::string& device, const std::string& pci) {
  return "pci path=pci0000:16/" + pci + " id=15b3:1021 class=020700 numa=1 driver=mlx5_core\n" +
         "link path=sys/class/infiniband/" + device + "/device to=../../../devices/pci0000:16/" +
         pci + "\n";
}

TEST(Rdma, PortsAreSortedByPciAddressWithSoftwareLast) {
  const test::Tree tree(state("rxe0") + state("mlx5_10") + on_pci("mlx5_10", "0000:17:00.0") +
                        state("mlx5_9") + on_pci("mlx5_9", "0000:18:00.0") + state("mlx5_9", 2));
  LiveMachine machine(tree.root());
  EXPECT_THAT(names_of(rdma_ports(machine)),
              ElementsAre("mlx5_10 1", "mlx5_9 1", "mlx5_9 2", "rxe0 1"));
}

TEST(Rdma, APortIsReadAsSysfsHasIt) {
  const std::string port = "file path=sys/class/infiniband/mlx5_0/ports/2/";
  const test::Tree tree(state("mlx5_0", 2) + on_pci("mlx5_0", "0000:17:00.0") + port +
                        "rate text=2.5 Gb/sec (1X SDR)\\n\n" + port +
                        "link_layer text=InfiniBand\\n\n" + port +
                        "gids/0 text=fe80:0000:0000:0000:0002:c903:0000:0001\\n\n" + port +
                        "gids/1 text=0000:0000:0000:0000:0000:0000:0000:0000\\n\n" +
                        "file path=sys/bus/pci/devices/0000:17:00.0/net/ib0/x text=\n"
                        "file path=sys/bus/pci/devices/0000:17:00.0/net/ib1/x text=\n"
                        "file path=sys/class/net/ib0/dev_port text=0\\n\n"
                        "file path=sys/class/net/ib1/dev_port text=1\\n\n");
  LiveMachine machine(tree.root());
  const RdmaPort found = read_rdma_port(machine, "mlx5_0", 2);
  EXPECT_TRUE(found.is_active());
  EXPECT_TRUE(found.is_infiniband);
  EXPECT_EQ(found.speed_mbps, 2500U);
  EXPECT_EQ(found.pci, "0000:17:00.0");
  EXPECT_EQ(found.numa_node, 1);
  EXPECT_EQ(found.interface, "ib1") << "of the second port";
  ASSERT_EQ(found.gids.size(), 1U) << "an empty one is none";
  EXPECT_EQ(address_of(found.gids[0].gid), *parse_ip("fe80::2:c903:0:1"));
  EXPECT_EQ(read_rdma_port(machine, "mlx5_0", 3).state, "");
}

TEST(Rdma, AMalformedRateIsUnknown) {
  const std::string rate = "file path=sys/class/infiniband/mlx5_0/ports/1/rate text=";
  for (const char* text : {"nan Gb/sec", "inf Gb/sec", "-1 Gb/sec", "99999999 Gb/sec", "100"}) {
    const test::Tree tree(state("mlx5_0") + rate + text + "\\n\n");
    LiveMachine machine(tree.root());
    EXPECT_EQ(read_rdma_port(machine, "mlx5_0", 1).speed_mbps, 0U) << text;
  }
}

TEST(Rdma, TheInterfaceOfSoftRoceIsItsParent) {
  const test::Tree tree(state("rxe0") +
                        "file path=sys/class/infiniband/rxe0/parent text=eth1\\n\n");
  LiveMachine machine(tree.root());
  EXPECT_EQ(read_rdma_port(machine, "rxe0", 1).interface, "eth1");
  EXPECT_EQ(read_rdma_port(machine, "rxe0", 1).pci, "");
}

TEST(Rdma, AnAuxiliaryDeviceBelongsToItsPciFunction) {
  const test::Tree tree(state("irdma0") +
                        "link path=sys/class/infiniband/irdma0/device "
                        "to=../../../devices/pci0000:16/0000:17:00.0/ice.roce.0\n");
  LiveMachine machine(tree.root());
  EXPECT_EQ(read_rdma_port(machine, "irdma0", 1).pci, "0000:17:00.0");
}

TEST(Rdma, PacketsFitTheInterfacesMtu) {
  EXPECT_EQ(roce_payload_bytes(1500), 1024U);
  EXPECT_EQ(roce_payload_bytes(2143), 1024U);
  EXPECT_EQ(roce_payload_bytes(2144), 2048U);
  EXPECT_EQ(roce_payload_bytes(kMtuForLargestPayload), kLargestRocePayload);
  EXPECT_EQ(roce_payload_bytes(9000), kLargestRocePayload);
  EXPECT_EQ(roce_payload_bytes(100), 256U);
}

}  // namespace
}  // namespace ztcp::config
