// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/device_list.h"

#include <gmock/gmock.h>

#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {
namespace {

using testing::HasSubstr;

test::FakeDeviceSpec without_gpu(test::FakeDeviceSpec spec) {
  spec.knows_dmabuf = false;
  return spec;
}

TEST(VerbsDevices, AreReadWithWhatWasChosenAndWhy) {
  FakeHost host;
  host.tree.add(
      "pci path=pci0000:16/0000:16:00.0/0000:17:00.0 id=15b3:101b class=020700 numa=1\n"
      "link path=sys/class/infiniband/fake0/device to=../../../devices/pci0000:16/0000:16:00.0/"
      "0000:17:00.0\n");
  host.fabric.nics[0].gpu_pci = "0000:19:00.0";
  const std::vector<Device> devices = host.list();
  ASSERT_EQ(devices.size(), 2U);
  const Device& device = devices[0];
  EXPECT_EQ(device.fault, "");
  EXPECT_EQ(device.address.gid.index, 3) << "RoCE v2 of its IPv4 address";
  EXPECT_EQ(device.speed_mbps, 100'000U);
  EXPECT_EQ(device.mtu_bytes, 4096U);
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_TRUE(device.pci_path.ends_with("/0000:16:00.0/0000:17:00.0")) << device.pci_path;
  EXPECT_TRUE(device.has_dmabuf);
  EXPECT_FALSE(device.has_peer_memory);
  EXPECT_EQ(device_text(device),
            "fake0 port 1, RoCE v2, GID 3 10.0.0.1 (chosen by itself), 100000 Mb/s, PCI "
            "0000:17:00.0, GPU 0000:19:00.0, NUMA node 1, MTU 4096, agreed upon at 127.0.0.1; "
            "GPUDirect RDMA on (DMA-BUF); chosen by /etc/ztcp.conf");
  EXPECT_EQ(devices[1].pci_path, "");
}

TEST(VerbsDevices, GpuDirectIsOffWithTheReasonOrOnByAModule) {
  FakeHost host({without_gpu(roce_device("fake0", 1)), without_gpu(roce_device("fake1", 2))}, 1);
  EXPECT_EQ(host.list()[0].gpu_direct,
            "off: its driver registers no DMA-BUF, and nvidia_peermem is not loaded (modprobe "
            "nvidia_peermem)");
  host.tree.add_file("sys/kernel/mm/memory_peers/nv_mem/version", "1.0\n");
  EXPECT_EQ(host.list()[0].gpu_direct, "on (nv_peer_mem)");
  EXPECT_TRUE(host.list()[0].has_peer_memory);
  host.tree.add_file("sys/module/nvidia_peermem/version", "550\n");
  EXPECT_EQ(host.list()[0].gpu_direct, "on (nvidia_peermem)")
      << "which has the old one's place, too";
}

// Which NCCL learns from CUDA, and hands no DMA-BUF over.
TEST(VerbsDevices, AGpuDriverThatExportsNoDmaBufIsNamed) {
  FakeHost host;
  host.tree.add_file("proc/sys/kernel/osrelease", "6.1.0\n");
  host.tree.add_file("proc/driver/nvidia/version", "NVIDIA UNIX x86_64 Kernel Module  550.54\n");
  EXPECT_EQ(host.list()[0].gpu_direct,
            "on (DMA-BUF; but DMA-BUFs need NVIDIA's open kernel module)");
  host.tree.add_file("proc/driver/nvidia/version", "NVIDIA UNIX Open Kernel Module  550.54\n");
  EXPECT_EQ(host.list()[0].gpu_direct, "on (DMA-BUF)");
}

TEST(VerbsDevices, AnOldLibraryKnowsNoDmabufAndTheLineSaysSo) {
  FakeHost host;
  Api old = *host.devices.api();
  old.reg_dmabuf_mr = nullptr;
  const std::vector<Device> devices = devices_of(
      old, host.fabric, host.variables, std::vector{loopback()}, host.tree.root() + "/sys");
  EXPECT_FALSE(devices[0].has_dmabuf);
  EXPECT_THAT(devices[0].gpu_direct, HasSubstr("libibverbs is older than release 34"));
}

TEST(VerbsDevices, TheConfigGoesBeforeNcclsVariables) {
  FakeHost host;
  host.variables.gid_index = 0;
  host.variables.traffic_class = 106;
  host.fabric.nics[1].gid_index = 1;
  host.fabric.nics[1].traffic_class = 96;
  const std::vector<Device> devices = host.list();
  EXPECT_EQ(devices[0].address.gid.index, 0);
  EXPECT_EQ(devices[0].gid_rule.by, "NCCL_IB_GID_INDEX");
  EXPECT_EQ(devices[0].traffic_class, 106);
  EXPECT_EQ(devices[1].address.gid.index, 1);
  EXPECT_EQ(devices[1].traffic_class, 96);
}

TEST(VerbsDevices, EverySettingIsTheConfigsElseNcclsElseOurs) {
  FakeHost host;
  host.variables.service_level = 1;
  host.variables.timeout = 22;
  host.variables.retries = 5;
  host.variables.pkey_index = 2;
  host.variables.queue_pairs = 4;
  host.variables.is_relaxed = false;
  host.variables.slot_traffic_class = 104;
  host.variables.is_split = true;
  host.variables.has_ece = false;
  config::Nic& said = host.fabric.nics[1];
  said.service_level = 0;
  said.ack_timeout = 0;
  said.retries = 0;
  said.rnr_retries = 1;
  said.pkey_index = 0;
  said.queue_pairs = 2;
  said.relaxed_ordering = config::OnOff::kOn;
  const std::vector<Device> devices = host.list();
  const auto of = [](const Device& device) {
    return std::vector<int>{device.service_level,     device.timeout,
                            device.retries,           device.rnr_retries,
                            device.pkey_index,        static_cast<int>(device.queue_pairs),
                            device.is_relaxed ? 1 : 0};
  };
  EXPECT_EQ(of(devices[0]), (std::vector<int>{1, 22, 5, 7, 2, 4, 0}));
  EXPECT_EQ(of(devices[1]), (std::vector<int>{0, 0, 0, 1, 0, 2, 1}));
  EXPECT_EQ(devices[0].settings,
            "NCCL_IB_FIFO_TC 104, NCCL_IB_SL 1, NCCL_IB_TIMEOUT 22, NCCL_IB_RETRY_CNT 5, "
            "NCCL_IB_PKEY 2, NCCL_IB_QPS_PER_CONNECTION 4, NCCL_IB_SPLIT_DATA_ON_QPS 1, "
            "NCCL_IB_ECE_ENABLE 0, NCCL_IB_PCI_RELAXED_ORDERING 0");
  EXPECT_EQ(devices[0].slot_traffic_class, 104);
  EXPECT_TRUE(devices[0].is_split);
  EXPECT_FALSE(devices[0].has_ece);
  EXPECT_THAT(device_text(devices[1]),
              HasSubstr(", service_level 0, ack_timeout 0, retries 0, rnr_retries 1, pkey_index 0, "
                        "queue_pairs 2, NCCL_IB_SPLIT_DATA_ON_QPS 1, NCCL_IB_ECE_ENABLE 0, "
                        "relaxed_ordering 1; chosen by /etc/ztcp.conf"));
  said.relaxed_ordering = config::OnOff::kOff;
  host.variables.is_relaxed = true;
  EXPECT_FALSE(host.list()[1].is_relaxed);
}

TEST(VerbsDevices, NotificationThreshold_IsTheConfigsElseNcclsElseByTheNetwork) {
  FakeHost host;
  const auto above = [&] { return host.list()[0].notified_separately_above; };
  EXPECT_EQ(above(), Device::kNever) << "Ethernet";
  host.variables.adaptive_threshold = 100;
  EXPECT_EQ(above(), Device::kNever);
  host.variables.adaptive_routing = 1;
  EXPECT_EQ(above(), 100U);
  EXPECT_EQ(host.list()[0].settings, "NCCL_IB_ADAPTIVE_ROUTING 1, NCCL_IB_AR_THRESHOLD 100");
  host.fabric.nics[0].adaptive_routing_threshold_bytes = 0;
  EXPECT_EQ(above(), 0U);
  EXPECT_EQ(host.list()[0].settings, "adaptive_routing_threshold_bytes 0");
  host.fabric.nics[0].adaptive_routing_threshold_bytes = 2147483647;
  EXPECT_EQ(above(), Device::kNever);

  test::FakeDeviceSpec spec;
  spec.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
  spec.ports[0].gids = {gid_of(0xfe80'0000'0000'0000, 1)};
  FakeHost infiniband({spec, roce_device("fake1", 2)}, 1);
  EXPECT_EQ(infiniband.list()[0].notified_separately_above, 8192U);
  infiniband.variables.adaptive_routing = 0;
  EXPECT_EQ(infiniband.list()[0].notified_separately_above, Device::kNever);
}

// Each names the device, and the other device serves.
TEST(VerbsDevices, DeviceThatCantBeUsedSaysWhyInItsFault) {
  FakeHost host;
  const auto fault = [&] {
    const std::vector<Device> devices = host.list();
    EXPECT_EQ(devices[1].fault, "");
    return devices[0].fault;
  };
  host.fabric.nics[0].device_port = 2;
  EXPECT_THAT(fault(), HasSubstr("fake0 has no port 2"));
  host.fabric.nics[0].device_port = 1;
  host.fabric.nics[0].gid_index = 9;
  EXPECT_THAT(fault(), HasSubstr("GID 9 of port 1 of fake0 (gid_index of the config) is empty"));
  host.fabric.nics[0].gid_index = -1;
  host.fabric.nics[0].address = *parse_ip_prefix("10.9.9.9/24");
  EXPECT_THAT(fault(), HasSubstr("10.9.9.9/24 is none of this host's"));
  host.fabric.nics[0].address = loopback().prefix;
  host.fabric.nics[0].device = "mlx5_0";
  EXPECT_EQ(fault(), "no RDMA device mlx5_0 is here; this host has fake0, fake1");
}

TEST(VerbsDevices, PortsThatAreDownAndDevicesThatMayNotBeOpenedSayWhatMendsIt) {
  test::FakeDeviceSpec down = roce_device("fake0", 1);
  down.ports[0].state = IBV_PORT_DOWN;
  test::FakeDeviceSpec closed = roce_device("fake1", 2);
  closed.may_open = false;
  const FakeHost host({down, closed}, 1);
  const std::vector<Device> devices = host.list();
  EXPECT_THAT(devices[0].fault, HasSubstr("port 1 of fake0 is down: plug the cable in"));
  EXPECT_THAT(devices[1].fault, HasSubstr("fake1 can't be opened: Permission denied; this user "
                                          "needs /dev/infiniband/uverbs*"));
}

TEST(VerbsDevices, NcclsSwitchTurnsThemOff) {
  FakeHost host;
  host.variables.is_disabled = true;
  EXPECT_THAT(host.list()[0].fault, HasSubstr("NCCL_IB_DISABLE=1"));
}

// There, NCCL's own network ignores the variable and takes the first GID, or a routable one.
TEST(VerbsDevices, NcclsGidIndexIsOfRoceAlone) {
  test::FakeDeviceSpec spec = roce_device("fake0", 1);
  spec.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
  spec.ports[0].lid = 7;
  spec.ports[0].gids = {gid_of(0xfe80'0000'0000'0000, 0x1111), ibv_gid{}, ibv_gid{}, ibv_gid{}};
  FakeHost host({spec, roce_device("fake1", 2)}, 1);
  host.variables.gid_index = 2;
  const std::vector<Device> devices = host.list();
  EXPECT_EQ(devices[0].fault, "");
  EXPECT_EQ(devices[0].address.gid.index, 0);
  EXPECT_EQ(devices[1].address.gid.index, 2);
  host.fabric.nics[0].gid_index = 3;
  EXPECT_THAT(host.list()[0].fault, HasSubstr("GID 3 of port 1 of fake0 (gid_index of the config)"))
      << "which is said of this very device";
}

TEST(VerbsDevices, NcclsWishesChooseAmongGids) {
  FakeHost host;
  host.variables.gid_wish.family = GidWish::Family::kIpv6;
  host.variables.gid_wished_by = "NCCL_IB_ADDR_FAMILY=AF_INET6";
  EXPECT_EQ(host.list()[0].address.gid.index, 1);
  EXPECT_THAT(device_text(host.list()[0]),
              HasSubstr("GID 1 fe80::1 (chosen by NCCL_IB_ADDR_FAMILY=AF_INET6)"));
  host.variables.gid_wish = {.range = parse_ip_prefix("172.16.0.0/12")};
  host.variables.gid_wished_by = "NCCL_IB_ADDR_RANGE=172.16.0.0/12";
  EXPECT_THAT(device_text(host.list()[0]),
              HasSubstr("GID 3 10.0.0.1 (chosen by itself: none fits NCCL_IB_ADDR_RANGE=172.16"));
}

TEST(VerbsDevices, OneWithoutReliableConnectionsIsNotTakenForRoce) {
  test::FakeDeviceSpec efa = roce_device("fake0", 1);
  efa.transport = IBV_TRANSPORT_UNSPECIFIED;
  efa.ports[0].link_layer = IBV_LINK_LAYER_UNSPECIFIED;
  const FakeHost host({efa, roce_device("fake1", 2)}, 1);
  const std::vector<Device> devices = host.list();
  EXPECT_THAT(devices[0].fault, HasSubstr("port 1 of fake0 is neither InfiniBand, RoCE nor iWARP"));
  EXPECT_EQ(devices[1].fault, "");
}

TEST(VerbsDevices, TheSpeedIsTheKernelsWhereTheLibraryDoesNotKnowIt) {
  test::FakeDeviceSpec xdr = roce_device("fake0", 1);
  xdr.ports[0].speed = 128;  // NDR, as an older library reads it.
  FakeHost host({xdr, roce_device("fake1", 2)}, 1);
  EXPECT_EQ(host.list()[0].speed_mbps, 400'000U);
  host.tree.add_file("sys/class/infiniband/fake0/ports/1/rate", "800 Gb/sec (4X XDR)\n");
  EXPECT_EQ(host.list()[0].speed_mbps, 800'000U);

  xdr.ports[0].speed_100mbps = 16'000;
  FakeHost newer({xdr, roce_device("fake1", 2)}, 1);
  EXPECT_EQ(newer.list()[0].speed_mbps, 1'600'000U) << "of a bond's two links";
  newer.variables.asks_port_speed = false;
  EXPECT_EQ(newer.list()[0].speed_mbps, 400'000U);
  newer.variables.asks_port_speed = true;
  newer.fabric.nics[0].speed_mbps = 25'000;
  EXPECT_EQ(newer.list()[0].speed_mbps, 25'000U) << "the config's word";
}

}  // namespace
}  // namespace ztcp::verbs
