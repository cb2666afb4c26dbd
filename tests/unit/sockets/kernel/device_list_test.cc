// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/device_list.h"

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/support/tree.h"
#include "tests/unit/sockets/kernel/local_host.h"

namespace ztcp::sockets {
namespace {

using Host = std::vector<LocalAddress>;

config::Fabric configured(const std::string& interface, const std::string& address) {
  config::Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  config::Nic nic;
  nic.name = "ztcp0";
  nic.driver = config::NicDriver::kSocket;
  nic.interface = interface;
  nic.address = *parse_ip_prefix(address);
  fabric.nics.push_back(nic);
  return fabric;
}

Device device_on(const test::Tree& tree, const std::string& interface, const std::string& address,
                 const Host& host) {
  const auto devices = devices_of(configured(interface, address), host, tree.root() + "/sys");
  EXPECT_TRUE(devices);
  return devices ? devices->front() : Device{};
}

const char* const kEth1 =
    "pci path=pci0000:16/0000:16:00.0/0000:17:00.0 id=14e4:1750 class=020000 numa=1\n"
    "net path=pci0000:16/0000:16:00.0/0000:17:00.0 name=eth1 mac=02:00:00:00:00:01 mtu=9000 "
    "speed=100000\n";

TEST(SocketDevice, HasTheInterfacesPropertiesFromSysfs) {
  const test::Tree tree(kEth1);
  const Device device = device_on(tree, "eth1", "10.0.0.5/24", {at("eth1", "10.0.0.5/24", 3)});
  EXPECT_EQ(device.name, "ztcp0");
  EXPECT_EQ(device.interface, "eth1");
  EXPECT_EQ(device.speed_mbps, 100000U);
  EXPECT_EQ(device.speed_source, SpeedSource::kTold);
  EXPECT_EQ(device.mtu_bytes, 9000U);
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_TRUE(device.pci_path.ends_with("/0000:16:00.0/0000:17:00.0")) << device.pci_path;
  EXPECT_EQ(device.first_port, 7472);
  EXPECT_EQ(device.last_port, 7535);
  EXPECT_FALSE(device.bind_to_device);
  EXPECT_EQ(device.scope, 0U);
}

// A virtio NIC's sysfs device is on the virtio bus, which has no PCI path.
TEST(SocketDevice, VirtioNicHasThePciFunctionBehindIt) {
  test::Tree tree("pci path=pci0000:00/0000:00:05.0 id=1af4:1041 class=020000 numa=0\n");
  const std::string virtio = "sys/devices/pci0000:00/0000:00:05.0/virtio2";
  tree.add_folder(virtio + "/net/eth0");
  tree.add_link(virtio + "/net/eth0/device", "../../../virtio2");
  tree.add_folder("sys/bus/virtio");
  tree.add_link(virtio + "/subsystem", "../../../../bus/virtio");
  tree.add_link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:05.0/virtio2/net/eth0");
  tree.add_file(virtio + "/net/eth0/speed", "-1\n");
  const Device device = device_on(tree, "eth0", "10.0.0.5/24", {at("eth0", "10.0.0.5/24", 2)});
  EXPECT_TRUE(device.pci_path.ends_with("/0000:00:05.0")) << device.pci_path;
  EXPECT_EQ(device.speed_mbps, 10000U);
  EXPECT_EQ(device.speed_source, SpeedSource::kGuess);
  EXPECT_EQ(device.mtu_bytes, 0U);
}

TEST(SocketDevice, BondHasNoPciFunction) {
  test::Tree tree;
  tree.add_folder("sys/devices/virtual/net/bond0");
  tree.add_file("sys/devices/virtual/net/bond0/speed", "50000\n");
  tree.add_file("sys/devices/virtual/net/bond0/mtu", "1500\n");
  tree.add_file("sys/devices/virtual/net/bond0/uevent", "DEVTYPE=bond\nINTERFACE=bond0\n");
  tree.add_link("sys/class/net/bond0", "../../devices/virtual/net/bond0");
  const Device device = device_on(tree, "bond0", "10.0.0.5/24", {at("bond0", "10.0.0.5/24", 7)});
  EXPECT_EQ(device.pci_path, "");
  EXPECT_EQ(device.speed_mbps, 50000U);
  EXPECT_EQ(device.speed_source, SpeedSource::kTold);
  EXPECT_EQ(device.numa_node, -1);
}

// Such as a pod's: the driver reports 10 Gb/s for every veth.
TEST(SocketDevice, VethHasANominalSpeed) {
  test::Tree tree;
  const std::string folder = "sys/devices/virtual/net/eth0";
  tree.add_file(folder + "/speed", "10000\n");
  tree.add_file(folder + "/uevent", "INTERFACE=eth0\nIFINDEX=2\n");
  tree.add_link("sys/class/net/eth0", "../../devices/virtual/net/eth0");
  const Host host{at("eth0", "10.0.0.5/24", 2)};
  const Device device = device_on(tree, "eth0", "10.0.0.5/24", host);
  EXPECT_EQ(device.speed_mbps, 10000U);
  EXPECT_EQ(device.speed_source, SpeedSource::kNominal);
  EXPECT_NE(device_text(device).find("10000 Mb/s (nominal: a virtual interface)"),
            std::string::npos);

  config::Fabric told = configured("eth0", "10.0.0.5/24");
  told.nics[0].speed_mbps = 25000;
  EXPECT_EQ(devices_of(told, host, tree.root() + "/sys")->front().speed_source, SpeedSource::kTold);

  tree.add_folder(folder + "/lower_eth1");
  EXPECT_EQ(device_on(tree, "eth0", "10.0.0.5/24", host).speed_source, SpeedSource::kTold);
}

TEST(SocketDevice, HasTheReceiveQueuesOfTheLowerInterfaces) {
  test::Tree tree;
  const std::string all = "sys/devices/virtual/net/";
  const auto make = [&](const std::string& name, int queues) {
    for (int i = 0; i < queues; ++i) {
      tree.add_folder(all + name + "/queues/rx-" + std::to_string(i));
      tree.add_folder(all + name + "/queues/tx-" + std::to_string(i));
    }
    tree.add_link("sys/class/net/" + name, "../../devices/virtual/net/" + name);
  };
  const auto stands_on = [&](const std::string& upper, const std::string& lower) {
    tree.add_link(all + upper + "/lower_" + lower, "../" + lower);
  };
  make("eth1", 4);
  make("eth2", 2);
  make("lo", 1);
  make("bond0", 16);
  make("bond0.7", 1);
  tree.add_folder(all + "tun0");
  tree.add_link("sys/class/net/tun0", "../../devices/virtual/net/tun0");
  stands_on("bond0", "eth1");
  stands_on("bond0", "eth2");
  stands_on("bond0.7", "bond0");
  const auto count = [&](const std::string& name) {
    return device_on(tree, name, "10.0.0.5/24", {at(name, "10.0.0.5/24", 3)}).rx_queues;
  };
  EXPECT_EQ(count("eth1"), 4U);
  EXPECT_EQ(count("lo"), 1U);
  EXPECT_EQ(count("tun0"), 0U);
  EXPECT_EQ(count("bond0"), 6U) << "its own carry no packets";
  EXPECT_EQ(count("bond0.7"), 6U);
  stands_on("eth1", "bond0");  // A cycle, which no kernel makes, must not recurse for ever.
  EXPECT_GT(count("bond0"), 1U);
}

TEST(SocketDevice, ConfigOverridesSysfs) {
  const test::Tree tree(kEth1);
  config::Fabric fabric = configured("eth1", "10.0.0.5/24");
  fabric.nics[0].speed_mbps = 25000;
  fabric.nics[0].numa_node = 0;
  fabric.nics[0].nccl_devices = 3;
  const auto devices = devices_of(fabric, Host{at("eth1", "10.0.0.5/24", 3)}, tree.root() + "/sys");
  ASSERT_TRUE(devices);
  EXPECT_EQ(devices->front().speed_mbps, 25000U);
  EXPECT_EQ(devices->front().numa_node, 0);
  EXPECT_EQ(devices->front().nccl_devices, 3U);
}

TEST(SocketDevice, SocketsAreBoundIfAnotherInterfaceIsInTheNetwork) {
  const test::Tree tree;
  const LocalAddress own = at("eth1", "10.0.0.5/24", 3);
  const auto bound = [&](const LocalAddress& other) {
    return device_on(tree, "eth1", "10.0.0.5/24", {own, other}).bind_to_device;
  };
  EXPECT_TRUE(bound(at("eth0", "10.0.0.4/24", 2)));
  EXPECT_TRUE(bound(at("eth0", "10.0.9.4/16", 2))) << "a larger network includes it";
  EXPECT_TRUE(bound(at("eth0", "10.0.0.4/32", 2))) << "as clouds assign them";
  EXPECT_FALSE(bound(at("eth0", "10.0.1.4/24", 2)));
  EXPECT_FALSE(bound(at("eth0", "10.0.0.4/24", 2, "down")));
  EXPECT_FALSE(bound(at("eth1", "10.0.0.6/24", 3))) << "a second address of its own";
}

TEST(SocketDevice, LinkLocalAddressHasItsZone) {
  const test::Tree tree;
  const Device device = device_on(tree, "eth1", "fe80::5/64",
                                  {at("eth0", "fe80::5/64", 2), at("eth1", "fe80::5/64", 3)});
  EXPECT_EQ(device.scope, 3U);
  EXPECT_FALSE(device.bind_to_device);
}

TEST(SocketDevice, InterfaceWithoutTheConfiguredAddressIsAnError) {
  EXPECT_FALSE(devices_of(configured("eth1", "10.0.0.5/24"), Host{at("eth1", "10.0.0.6/24", 3)}));
  EXPECT_FALSE(devices_of(configured("eth1", "10.0.0.5/24"), Host{at("eth0", "10.0.0.5/24", 2)}));
}

TEST(SocketDevice, WithoutAConfigHasTheInterfacesName) {
  const test::Tree tree(kEth1);
  const Host host = {at("lo", "127.0.0.1/8", 1), at("eth1", "10.0.0.5/24", 3),
                     at("eth1:2", "10.0.7.5/24", 3)};
  config::Fabric settings = configured("eth9", "10.0.0.9/24");
  settings.tcp.max_connections = 77;
  const auto fabric = fabric_of(settings, {.ifname = "eth"}, host);
  ASSERT_TRUE(fabric);
  EXPECT_EQ(fabric->tcp.max_connections, 77U) << "the config's other settings hold";
  const auto devices = devices_of(*fabric, host, tree.root() + "/sys");
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ((*devices)[0].name, "eth1");
  EXPECT_EQ((*devices)[1].name, "eth1:2");
  EXPECT_EQ((*devices)[1].interface, "eth1") << "a label is no interface";
  EXPECT_EQ(device_text((*devices)[0]),
            "eth1 10.0.0.5, PCI 0000:17:00.0, 100000 Mb/s, any GPU, NUMA node 1, MTU 9000, ports "
            "of the kernel's choice; GPUDirect RDMA off: kernel sockets end in host memory; chosen "
            "by NCCL_SOCKET_IFNAME=eth");
}

TEST(SocketDevice, WithoutAFittingInterfaceTheErrorListsThoseOfTheHost) {
  const auto none = fabric_of({}, {.ifname = "ens"},
                              Host{at("lo", "127.0.0.1/8", 1), at("eth1", "10.0.0.5/24", 3, "down"),
                                   at("eth2", "2001:db8::1/64", 4, "no-carrier")});
  ASSERT_FALSE(none);
  EXPECT_EQ(
      none.error(),
      "no interface that is up and has a carrier fits NCCL_SOCKET_IFNAME=ens; this host has lo "
      "127.0.0.1/8, eth1 10.0.0.5/24 (down), eth2 2001:db8::1/64 (no carrier)");
  EXPECT_TRUE(fabric_of({}, {}, Host{}).error().ends_with("has none with an address"));
}

TEST(SocketDevice, ChosenInterfaceThatPeersMayBeUnableToReachIsWarnedOf) {
  test::LogCapture log;
  LocalAddress slave = at("eth0", "10.0.0.5/24", 2);
  slave.master = "bond0";
  const LocalAddress local = at("eth1", "169.254.0.5/16", 3);
  ASSERT_TRUE(fabric_of({}, {}, Host{slave, local}));
  ASSERT_EQ(log.warnings().size(), 2U);
  EXPECT_EQ(log.warnings()[0],
            "eth0: it is a part of bond0, so peers may be unable to reach it at 10.0.0.5, and no "
            "better interface fits NCCL's rules (all but docker*, lo* and virbr*); choose one "
            "with NCCL_SOCKET_IFNAME");
  EXPECT_NE(log.warnings()[1].find("eth1: it has a link-local address alone"), std::string::npos);
  ASSERT_TRUE(fabric_of({}, {.ifname = "=eth1"}, Host{slave, local}));
  EXPECT_EQ(log.warnings().size(), 2U) << "it was named";
  ASSERT_TRUE(fabric_of({}, {}, Host{slave, at("bond0", "10.0.0.6/24", 5)}));
  EXPECT_EQ(log.warnings().size(), 2U);
  EXPECT_EQ(log.infos().back(),
            "eth0 is not used: it is a part of bond0, and other interfaces fit");
}

TEST(SocketDevice, TextStatesUnknownPropertiesAndBoundSockets) {
  const test::Tree tree;
  const std::string text = device_text(device_on(
      tree, "eth1", "10.0.0.5/24", {at("eth1", "10.0.0.5/24", 3), at("eth0", "10.0.0.4/24", 2)}));
  EXPECT_EQ(text,
            "eth1 10.0.0.5 (sockets bound to it: another interface is in this network), no PCI "
            "function, 10000 Mb/s (a guess: its driver reports none), any GPU, NUMA node unknown, "
            "MTU unknown, ports 7472-7535; GPUDirect RDMA off: kernel sockets end in host memory; "
            "chosen by /etc/ztcp.conf");
}

}  // namespace
}  // namespace ztcp::sockets
