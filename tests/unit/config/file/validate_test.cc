// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Validates values beyond their type, and values together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/file/config_texts.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;

std::string two_nics(const std::string& from, const std::string& to) {
  std::string second = replaced(kMemifNic, "ztcp0", "ztcp1");
  second = replaced(second, "10.0.0.1", "10.0.0.2");
  second = replaced(second, "00:01", "00:02");
  second = replaced(second, "a.sock", "b.sock");
  return std::string("schema = 1\n") + kMemifNic + replaced(second, from, to);
}

std::string mesh_section(const std::string& name, int number, int queues) {
  const std::string n = std::to_string(number);
  return "[[nic]]\nname = \"" + name + "\"\ndriver = \"memif\"\naddress = \"10.0.0." + n +
         "/24\"\nmac = \"02:00:00:00:00:0" + n +
         "\"\nmemif_socket = \"mesh\"\nmemif_role = \"mesh\"\nqueues = " + std::to_string(queues) +
         "\n";
}

class ValidateMessage : public MessageTest {};

TEST_P(ValidateMessage, NamesPlaceValueAndMend) { judge(); }

INSTANTIATE_TEST_SUITE_P(
    Meaning, ValidateMessage,
    testing::Values(
        MessageCase{"fabric_name", with_nic("name = \"a b\""), "2:8",
                    "name = \"a b\" is not up to 63"},
        MessageCase{"empty_run_dir", with_nic("run_dir = \"\""), "2:11", "run_dir is empty"},
        MessageCase{"machine_id", with_nic("[host]\nmachine_id = \"abc\""), "3:14",
                    "host.machine_id = \"abc\" is not 32 hex digits"},
        MessageCase{"page_size", with_nic("[hugepages]\npage_kib = 4"), "3:12",
                    "hugepages.page_kib = 4 is not 0, 2048 or 1048576"},
        MessageCase{"no_pages_for_pci", std::string("schema = 1\n") + kPciNic, "1:1",
                    "hugepages.page_kib = 0, but nic \"ztcp0\" is on PCI"},
        MessageCase{"chunk_not_of_4_kib", with_nic("[messages]\nmax_chunk_kib = 6"), "3:17",
                    "max_chunk_kib = 6 is not a multiple of 4", "write 8"},
        MessageCase{"cluster_key_length", with_nic("[messages]\ncluster_key = \"abc\""), "3:15",
                    "cluster_key has 3 characters", "openssl rand"},
        MessageCase{"cluster_key_zero",
                    with_nic("[messages]\ncluster_key = \"" + std::string(64, '0') + "\""), "3:15",
                    "all zeros"},
        MessageCase{"timeout_below_rto",
                    with_nic("[tcp]\nrto_min_us = 1000000\nuser_timeout_ms = 500"), "4:19",
                    "tcp.user_timeout_ms = 500 ms is shorter than tcp.rto_min_us = 1000000 us"},
        MessageCase{"cpu_twice", with_nic("[poller]\ncpus = [1, 2, 1]"), "3:8",
                    "names CPU 1 twice"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Nic, ValidateMessage,
    testing::Values(
        MessageCase{"name_missing", nic_with("name = \"ztcp0\"\n", ""), "2:1",
                    "nic[0].name is missing"},
        MessageCase{"driver_missing", nic_with("driver = \"memif\"\n", ""), "2:1",
                    "nic[0].driver is missing"},
        MessageCase{"address_missing", nic_with("address = \"10.0.0.1/24\"\n", ""), "2:1",
                    "nic[0].address is missing"},
        MessageCase{"mac_missing", nic_with("mac = \"02:00:00:00:00:01\"\n", ""), "2:1",
                    "mac is missing; driver = \"memif\" needs it"},
        MessageCase{"blank_in_socket", nic_with("a.sock", "/my fabric/a.sock"), "7:16",
                    "memif_socket = \"/my fabric/a.sock\" has a blank in its path",
                    "without blanks"},
        MessageCase{"comma_in_socket", nic_with("a.sock", "/a,b/a.sock"), "7:16",
                    "has a ',' in its path", "without blanks"},
        MessageCase{"equals_in_socket", nic_with("a.sock", "/a=b/a.sock"), "7:16",
                    "has a '=' in its path", "without blanks"},
        MessageCase{"list_in_socket", nic_with("a.sock", "/a[b]/a.sock"), "7:16",
                    "has a '[' in its path", "without blanks"},
        MessageCase{"mesh_of_one", nic_with("a.sock\"\n", "mesh\"\nmemif_role = \"mesh\"\n"),
                    "8:14", "nic \"ztcp0\" is alone in the mesh of memif_socket",
                    "give all NICs of a mesh the same memif_socket"},
        MessageCase{"queues_of_no_mesh", nic_with("a.sock\"\n", "a.sock\"\nqueues = 2\n"), "8:10",
                    "queues = 2, but nic \"ztcp0\" is in no mesh", "remove queues"},
        MessageCase{"too_many_queues", nic_with("a.sock\"\n", "a.sock\"\nqueues = 9\n"), "8:10",
                    "queues = 9 is outside 1..8"},
        MessageCase{"socket_missing", nic_with("memif_socket = \"a.sock\"\n", ""), "2:1",
                    "memif_socket is missing; driver = \"memif\" needs it"},
        MessageCase{"pci_missing",
                    std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") +
                        replaced(kPciNic, "pci = \"0000:3b:00.0\"\n", ""),
                    "4:1", "pci is missing; driver = \"pci\" needs it"},
        MessageCase{"tap_missing",
                    replaced(nic_with("\"memif\"", "\"tap\""), "memif_socket = \"a.sock\"\n", ""),
                    "2:1", "tap_interface is missing; driver = \"tap\" needs it"},
        MessageCase{"xdp_ports_missing",
                    "schema = 1\n[[nic]]\nname = \"a\"\ndriver = \"xdp\"\ninterface = \"eth0\"\n"
                    "address = \"10.0.0.1/24\"\nlast_port = 65535\n",
                    "2:1", "first_port is missing; driver = \"xdp\" needs it"},
        MessageCase{"xdp_listens_among_source_ports",
                    "schema = 1\n[[nic]]\nname = \"a\"\ndriver = \"xdp\"\ninterface = \"eth0\"\n"
                    "address = \"10.0.0.1/24\"\nfirst_port = 7000\nlast_port = 7500\n",
                    "8:13", "messages.listen_port = 7471 is among the source ports 7000-7500"},
        MessageCase{"xdp_processes_listen_among_source_ports",
                    "schema = 1\n[[nic]]\nname = \"a\"\ndriver = \"xdp\"\ninterface = \"eth0\"\n"
                    "address = \"10.0.0.1/24\"\nfirst_port = 7475\nlast_port = 9000\n"
                    "processes = 8\n",
                    "8:13", "messages.listen_port = 7471 to 7478 is among the source ports"},
        MessageCase{"xdp_processes_past_the_last_port",
                    "schema = 1\n[messages]\nlisten_port = 65530\n[[nic]]\nname = \"a\"\n"
                    "driver = \"xdp\"\ninterface = \"eth0\"\naddress = \"10.0.0.1/24\"\n"
                    "first_port = 61000\nlast_port = 65000\nprocesses = 8\n",
                    "11:13", "processes = 8 needs the ports 65530 to 65537"},
        MessageCase{"xdp_mtu",
                    "schema = 1\n[[nic]]\nname = \"a\"\ndriver = \"xdp\"\ninterface = \"eth0\"\n"
                    "address = \"10.0.0.1/24\"\nfirst_port = 61000\nlast_port = 65535\n"
                    "mtu_bytes = 9300\n",
                    "9:13", "mtu_bytes = 9300 is outside 576..9216 bytes for driver = \"xdp\""},
        MessageCase{"key_of_other_driver", nic_with("name", "pci = \"0000:3b:00.0\"\nname"), "3:7",
                    "pci is for driver = \"pci\", this NIC has \"memif\"", "remove pci"},
        MessageCase{"driver_unknown", nic_with("\"memif\"", "\"memfi\""), "4:10",
                    "did you mean \"memif\"?"},
        MessageCase{"name_form", nic_with("ztcp0", "a/b"), "3:8", "name = \"a/b\" is not up to 31"},
        MessageCase{"pci_form",
                    std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") +
                        replaced(kPciNic, "0000:3b:00.0", "3b:00.0"),
                    "7:7", "pci = \"3b:00.0\" is not a PCI address"},
        MessageCase{"gpu_pci_form", nic_with("name", "gpu_pci = \"0000:3B:00.0\"\nname"), "3:11",
                    "gpu_pci = \"0000:3B:00.0\" is not a PCI address"},
        MessageCase{"gpu_uuid_form", nic_with("name", "gpu_uuid = \"0\"\nname"), "3:12",
                    "gpu_uuid = \"0\" is not GPU-"},
        MessageCase{"address_form", nic_with("10.0.0.1/24", "10.0.0.1"), "5:11",
                    "nic[0].address = \"10.0.0.1\" is not an address with prefix length"},
        MessageCase{"address_multicast", nic_with("10.0.0.1/24", "224.0.0.1/24"), "5:11",
                    "is not an address of a host"},
        MessageCase{"address_loopback", nic_with("10.0.0.1/24", "127.0.0.1/8"), "5:11",
                    "is not an address of a host"},
        MessageCase{"address_of_network", nic_with("10.0.0.1/24", "10.0.0.0/24"), "5:11",
                    "is the address of the network itself"},
        MessageCase{"address_broadcast", nic_with("10.0.0.1/24", "10.0.0.255/24"), "5:11",
                    "is the network's broadcast address"},
        MessageCase{"mac_form", nic_with("02:00:00:00:00:01", "02:00"), "6:7",
                    "is not a MAC address"},
        MessageCase{"mac_zero", nic_with("02:00:00:00:00:01", "00:00:00:00:00:00"), "6:7",
                    "can't belong to a NIC"},
        MessageCase{"mac_multicast", nic_with("02:00:00:00:00:01", "01:00:5e:00:00:01"), "6:7",
                    "can't belong to a NIC"},
        MessageCase{"gateway_form", nic_with("name", "gateway = \"10.0.0\"\nname"), "3:11",
                    "is not an IP address"},
        MessageCase{"gateway_is_self", nic_with("name", "gateway = \"10.0.0.1\"\nname"), "3:11",
                    "is the NIC itself"},
        MessageCase{"vlan", nic_with("name", "vlan_id = 4095\nname"), "3:11", "is outside 0..4094"},
        MessageCase{"vlan_priority", nic_with("name", "vlan_priority = 8\nname"), "3:17",
                    "is outside -1..7"},
        MessageCase{"vlan_priority_untagged", nic_with("name", "vlan_priority = 0\nname"), "3:17",
                    "vlan_priority = 0 without vlan_id: untagged frames have no priority"},
        MessageCase{"dscp", nic_with("name", "dscp = 64\nname"), "3:8",
                    "dscp = 64 is outside 0..63"},
        MessageCase{"dscp_of_rdma", of(kVerbsNic, "name", "dscp = 1\nname"), "3:8",
                    "dscp is for driver = \"pci\""},
        MessageCase{"mtu_small", nic_with("name", "mtu_bytes = 575\nname"), "3:13",
                    "mtu_bytes = 575 is outside 576..65280 bytes"},
        MessageCase{"mtu_large", nic_with("name", "mtu_bytes = 65281\nname"), "3:13",
                    "mtu_bytes = 65281 is outside 576..65280 bytes"},
        MessageCase{"mtu_pci",
                    std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") +
                        replaced(kPciNic, "name", "mtu_bytes = 9217\nname"),
                    "5:13", "mtu_bytes = 9217 is outside 576..9216 bytes for driver = \"pci\""},
        MessageCase{"same_name", two_nics("ztcp1", "ztcp0"), "9:8",
                    "nic[1].name = \"ztcp0\" appears already in line 3"},
        MessageCase{"same_address", two_nics("10.0.0.2/24", "10.0.0.1/16"), "11:11",
                    "nic[1].address = \"10.0.0.1\" appears already in line 5"},
        MessageCase{"same_mac", two_nics("00:02", "00:01"), "12:7",
                    "nic[1].mac = \"02:00:00:00:00:01\" appears already in line 6"},
        MessageCase{"unequal_queues",
                    "schema = 1\n" + mesh_section("ztcp0", 1, 2) + mesh_section("ztcp1", 2, 4),
                    "17:10", "nic \"ztcp1\" has 4 queues and \"ztcp0\" of the same mesh 2",
                    "the same queues for all NICs"},
        MessageCase{"same_socket", two_nics("b.sock", "a.sock"), "13:16", "set memif_id"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Kinds, ValidateMessage,
    testing::Values(
        MessageCase{"interface_missing", of(kSocketNic, "interface = \"eth1\"\n", ""), "2:1",
                    "interface is missing; driver = \"socket\" needs it"},
        MessageCase{"interface_form", of(kSocketNic, "eth1", "a/b"), "6:13",
                    "interface = \"a/b\" is not an interface name"},
        MessageCase{"v6_small_mtu", nic_with("10.0.0.1/24\"", "2001:db8::5/64\"\nmtu_bytes = 1279"),
                    "6:13",
                    "mtu_bytes = 1279 is below 1280, which IPv6 (address = \"2001:db8::5/64\")"},
        MessageCase{"v6_gateway_of_another_family",
                    nic_with("10.0.0.1/24\"", "2001:db8::5/64\"\ngateway = \"10.0.0.9\""), "6:11",
                    "gateway = \"10.0.0.9\" and address = \"2001:db8::5/64\" are of two families"},
        MessageCase{"v6_gateway_of_a_link_local_address",
                    nic_with("10.0.0.1/24\"", "fe80::5/64\"\ngateway = \"fe80::1\""), "6:11",
                    "leads nowhere"},
        MessageCase{"v6_gateway_is_a_group",
                    nic_with("10.0.0.1/24\"", "2001:db8::5/64\"\ngateway = \"ff02::2\""), "6:11",
                    "is not an address of a host"},
        MessageCase{"v6_gateway_is_nothing",
                    nic_with("10.0.0.1/24\"", "2001:db8::5/64\"\ngateway = \"::\""), "6:11",
                    "is not an IP address, or auto"},
        MessageCase{"v6_gateway_is_advertised_to_a_link_local_address",
                    nic_with("10.0.0.1/24\"", "fe80::5/64\"\ngateway = \"auto\""), "6:11",
                    "gateway = \"auto\" leads nowhere"},
        MessageCase{"gateway_is_advertised_over_ipv4", nic_with("name", "gateway = \"auto\"\nname"),
                    "3:11", "gateway = \"auto\" needs IPv6"},
        MessageCase{"auto_address_of_a_kernels_interface", of(kSocketNic, "10.0.0.1/24", "auto"),
                    "5:11", "address = \"auto\" is not for driver = \"socket\"", "ip address"},
        MessageCase{"auto_address_of_a_mesh",
                    "schema = 1\n" + replaced(mesh_section("ztcp0", 1, 1), "10.0.0.1/24", "auto") +
                        mesh_section("ztcp1", 2, 1),
                    "5:11", "address = \"auto\", but no router advertises itself in a mesh"},
        MessageCase{"auto_address_with_an_ipv4_gateway",
                    nic_with("10.0.0.1/24\"", "auto\"\ngateway = \"10.0.0.9\""), "6:11",
                    "gateway = \"10.0.0.9\" and address = \"auto\" are of two families"},
        MessageCase{"auto_address_with_a_small_mtu",
                    nic_with("10.0.0.1/24\"", "auto\"\nmtu_bytes = 1279"), "6:13",
                    "which IPv6 (address = \"auto\")"},
        MessageCase{"v6_loopback_of_userspace_tcp", nic_with("10.0.0.1/24", "::1/128"), "5:11",
                    "is not an address of a host"},
        MessageCase{"v6_multicast", of(kSocketNic, "10.0.0.1/24", "ff02::1/64"), "5:11",
                    "is not an address of a host"},
        MessageCase{"v6_unspecified", of(kSocketNic, "10.0.0.1/24", "::/64"), "5:11",
                    "is not an address of a host"},
        MessageCase{"v6_of_network", of(kSocketNic, "10.0.0.1/24", "2001:db8::/64"), "5:11",
                    "is the address of the network itself"},
        MessageCase{"v6_length", of(kSocketNic, "10.0.0.1/24", "2001:db8::1/129"), "5:11",
                    "is not an address with prefix length"},
        MessageCase{"mac_of_the_kernels",
                    of(kSocketNic, "name", "mac = \"02:00:00:00:00:01\"\nname"), "3:7",
                    "mac is for driver = \"pci\", \"memif\", \"tap\", this NIC has \"socket\"",
                    "remove mac"},
        MessageCase{"mtu_of_the_kernels", of(kSocketNic, "name", "mtu_bytes = 9000\nname"), "3:13",
                    "mtu_bytes is for driver = \"pci\", \"memif\", \"tap\""},
        MessageCase{
            "ports_of_another", nic_with("name", "first_port = 9\nname"), "3:14",
            "first_port is for driver = \"xdp\", \"mlx5\", \"socket\", \"verbs\", this NIC has "
            "\"memif\""},
        MessageCase{"port_range", of(kSocketNic, "name", "first_port = 0\nname"), "3:14",
                    "first_port = 0 is outside 1..65535"},
        MessageCase{"ports_in_turn", of(kSocketNic, "name", "first_port = 9\nlast_port = 8\nname"),
                    "4:13", "last_port = 8 is below first_port = 9", "larger one as last_port"},
        MessageCase{"first_port_above", of(kSocketNic, "name", "first_port = 9000\nname"), "3:14",
                    "first_port = 9000 is above last_port, which is 7535 by default",
                    "write last_port = 9063"},
        MessageCase{"same_interface",
                    of(kSocketNic, "name", "name") +
                        replaced(replaced(kSocketNic, "ztcp0", "ztcp1"), "0.1/", "0.2/"),
                    "11:13", "nic[1].interface = \"eth1\" appears already in line 6"},
        MessageCase{"device_missing", of(kVerbsNic, "device = \"mlx5_0\"\n", ""), "2:1",
                    "device is missing; driver = \"verbs\" needs it"},
        MessageCase{"device_form", of(kVerbsNic, "mlx5_0", "/dev/infiniband"), "6:10",
                    "device = \"/dev/infiniband\" is not a device name"},
        MessageCase{"device_of_another", of(kSocketNic, "name", "device = \"mlx5_0\"\nname"),
                    "3:10", "device is for driver = \"verbs\", this NIC has \"socket\""},
        MessageCase{"device_port_range", of(kVerbsNic, "name", "device_port = 0\nname"), "3:15",
                    "device_port = 0 is outside 1..255"},
        MessageCase{"gid_range", of(kVerbsNic, "name", "gid_index = 256\nname"), "3:13",
                    "gid_index = 256 is outside -1..255"},
        MessageCase{"traffic_class_range", of(kVerbsNic, "name", "traffic_class = -2\nname"),
                    "3:17", "traffic_class = -2 is outside -1..255"},
        MessageCase{"rail_range", of(kVerbsNic, "name", "rail = -2\nname"), "3:8",
                    "rail = -2 is outside -1..32767"},
        MessageCase{"merge_form", of(kVerbsNic, "name", "merge = \"a b\"\nname"), "3:9",
                    "merge = \"a b\" is not up to 31 letters"},
        MessageCase{"merge_of_another", of(kMemifNic, "name", "merge = \"a\"\nname"), "3:9",
                    "merge is for driver = \"verbs\", \"socket\", this NIC has \"memif\""},
        MessageCase{"merged_with_nothing", of(kSocketNic, "name", "merge = \"a\"\nname"), "3:9",
                    "merge = \"a\" is set for this interface only"},
        MessageCase{"devices_range", of(kSocketNic, "name", "nccl_devices = 9\nname"), "3:16",
                    "nccl_devices = 9 is outside 0..8"},
        MessageCase{"devices_of_verbs", of(kVerbsNic, "name", "nccl_devices = 2\nname"), "3:16",
                    "this NIC has \"verbs\""},
        MessageCase{"devices_of_a_merged_one",
                    replaced(of(kSocketNic, "name", "merge = \"a\"\nnccl_devices = 4\nname"),
                             "ztcp0", "ztcp1") +
                        replaced(kVerbsNic, "name", "merge = \"a\"\nname"),
                    "4:16",
                    "nccl_devices = 4, but nic \"ztcp1\" is exposed to NCCL as a part of \"a\""},
        MessageCase{"merged_as_a_nic_alone",
                    of(kVerbsNic, "name", "merge = \"ztcp1\"\nname") +
                        replaced(replaced(kVerbsNic, "ztcp0", "ztcp1"), "mlx5_0", "mlx5_1"),
                    "3:9", "merge = \"ztcp1\" is the name of an unmerged NIC"},
        MessageCase{"same_device",
                    of(kVerbsNic, "name", "name") + replaced(kVerbsNic, "ztcp0", "ztcp1"), "11:10",
                    "nic[1].device = \"mlx5_0 port 1\" appears already in line 6"}),
    [](const auto& row) { return row.param.name; });

TEST(Validate, AnInterfaceMayBeMergedWithAnRdmaDevice) {
  const auto result =
      parse(of(kVerbsNic, "name", "merge = \"a\"\nname") +
                replaced(replaced(kSocketNic, "name", "merge = \"a\"\nname"), "ztcp0", "ztcp1"),
            "f.conf");
  EXPECT_THAT(result.problems, testing::IsEmpty());
}

TEST(Validate, InterfacesMayBeMergedWithEachOther) {
  const std::string other =
      replaced(replaced(kSocketNic, "name", "merge = \"a\"\nname"), "ztcp0", "ztcp1");
  const auto result = parse(of(kSocketNic, "name", "merge = \"a\"\nname") +
                                replaced(replaced(other, "eth1", "eth2"), "10.0.0.1", "10.1.0.1"),
                            "f.conf");
  EXPECT_THAT(result.problems, testing::IsEmpty());
}

TEST(Validate, RefusesTheSamePciFunctionTwice) {
  std::string second = replaced(kPciNic, "ztcp0", "ztcp1");
  second = replaced(second, "10.0.0.1", "10.0.0.2");
  second = replaced(second, "00:01", "00:02");
  const auto result =
      parse(std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") + kPciNic + second, "f.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what,
              HasSubstr("nic[1].pci = \"0000:3b:00.0\" appears already in line 7"));
}

TEST(Validate, NeverShowsTheClusterKey) {
  const auto result = parse(with_nic("[messages]\ncluster_key = \"feedface\""), "f.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(to_string(result.problems[0]), testing::Not(HasSubstr("feedface")));
}

}  // namespace
}  // namespace ztcp::config
