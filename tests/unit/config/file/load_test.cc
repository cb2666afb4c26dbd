// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What load() says about files that are wrong, one case per message, and that it says everything
// at once.
#include "config/file/load.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"

namespace ztcp::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kNic = R"([[nic]]
name = "ztcp0"
driver = "memif"
address = "10.0.0.1/24"
mac = "02:00:00:00:00:01"
memif_socket = "a.sock"
)";
constexpr const char* kPciNic = R"([[nic]]
name = "ztcp0"
driver = "pci"
pci = "0000:3b:00.0"
address = "10.0.0.1/24"
mac = "02:00:00:00:00:01"
)";

constexpr const char* kSocketNic = R"([[nic]]
name = "ztcp0"
driver = "socket"
address = "10.0.0.1/24"
interface = "eth1"
)";
constexpr const char* kVerbsNic = R"([[nic]]
name = "ztcp0"
driver = "verbs"
address = "10.0.0.1/24"
device = "mlx5_0"
)";

std::string with_nic(const std::string& text) { return "schema = 1\n" + text + "\n" + kNic; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string nic_with(const std::string& from, const std::string& to) {
  return "schema = 1\n" + replaced(kNic, from, to);
}

TEST(Parse, TakesAMinimalFile) {
  const auto result = parse(with_nic(""), "/etc/ztcp.conf");
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
  ASSERT_EQ(result.fabric->nics.size(), 1U);
  const Nic& nic = result.fabric->nics.front();
  EXPECT_EQ(nic.name, "ztcp0");
  EXPECT_EQ(nic.driver, NicDriver::kMemif);
  EXPECT_EQ(to_string(nic.address), "10.0.0.1/24");
  EXPECT_EQ(to_string(nic.mac), "02:00:00:00:00:01");
  EXPECT_EQ(nic.mtu_bytes, 1500);
  EXPECT_EQ(result.fabric->messages, Messages{});
  EXPECT_EQ(result.fabric->tcp, Tcp{});
}

std::string of(const char* nic, const std::string& from, const std::string& to) {
  return "schema = 1\n" + replaced(nic, from, to);
}

TEST(Parse, TakesAnInterfaceOfTheKernel) {
  const auto result =
      parse(of(kSocketNic, "name", "first_port = 8000\nlast_port = 8063\nname"), "ztcp.conf");
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
  const Nic& nic = result.fabric->nics.front();
  EXPECT_EQ(nic.driver, NicDriver::kSocket);
  EXPECT_EQ(nic.interface, "eth1");
  EXPECT_EQ(nic.first_port, 8000);
  EXPECT_EQ(nic.last_port, 8063);
}

TEST(Parse, TakesAddressesOfEitherFamilyFromTheKernelsInterfaces) {
  for (const char* address : {"2001:db8::5/64", "fe80::1/64", "2001:db8::4/127", "::1/128",
                              "127.0.0.1/8", "2001:db8:0:7:1::/128"}) {
    const auto result = parse(of(kSocketNic, "10.0.0.1/24", address), "ztcp.conf");
    ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
    EXPECT_EQ(to_string(result.fabric->nics.front().address), address);
  }
}

// A link-local address says nothing without its link.
TEST(Parse, LetsTwoLinksHaveOneLinkLocalAddress) {
  const std::string first = replaced(kSocketNic, "10.0.0.1/24", "fe80::1/64");
  const std::string second = replaced(replaced(first, "ztcp0", "ztcp1"), "eth1", "eth2");
  EXPECT_TRUE(parse("schema = 1\n" + first + second, "ztcp.conf").fabric);
}

TEST(Parse, TakesRdmaDevices) {
  const std::string second = replaced(replaced(kVerbsNic, "ztcp0", "ztcp1"), "device",
                                      "device_port = 2\ngid_index = 3\ntraffic_class = 106\n"
                                      "device");
  const auto result = parse("schema = 1\n" + std::string(kVerbsNic) + second, "ztcp.conf");
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
  const Nic& first = result.fabric->nics[0];
  EXPECT_EQ(first.driver, NicDriver::kVerbs);
  EXPECT_EQ(first.device, "mlx5_0");
  EXPECT_EQ(first.device_port, 1);
  EXPECT_EQ(first.gid_index, -1);
  EXPECT_EQ(first.traffic_class, -1);
  EXPECT_EQ(result.fabric->nics[1].device_port, 2);
  EXPECT_EQ(result.fabric->nics[1].gid_index, 3);
  EXPECT_EQ(result.fabric->nics[1].traffic_class, 106);
}

TEST(Parse, ResolvesPathsAgainstTheFilesFolder) {
  const auto result = parse("run_dir = \"../run\"\n" + with_nic(""), "/etc/ztcp/ztcp.conf");
  ASSERT_TRUE(result.fabric);
  EXPECT_EQ(result.fabric->run_dir, "/etc/run");
  EXPECT_EQ(result.fabric->nics.front().memif_socket, "/etc/ztcp/a.sock");
  EXPECT_EQ(result.fabric->path, "/etc/ztcp/ztcp.conf");
}

TEST(Parse, TakesAnyLanguageInStringsAndComments) {
  const auto result =
      parse("run_dir = \"/r\u00e9seau\\\"/\u7f51\" # \u7f51\u7edc 'x\n" + with_nic(""), "/c");
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
  EXPECT_EQ(result.fabric->run_dir, "/r\u00e9seau\"/\u7f51");
}

TEST(Parse, TakesBothEndsOfOneMemif) {
  const std::string server = replaced(kNic, "\"a.sock\"", "\"a.sock\"\nmemif_role = \"server\"");
  std::string client = replaced(kNic, "ztcp0", "ztcp1");
  client = replaced(client, "10.0.0.1", "10.0.0.2");
  client = replaced(client, "00:01", "00:02");
  EXPECT_TRUE(parse("schema = 1\n" + server + client, "c").fabric);
}

TEST(Parse, ReportsEverythingTogetherInFileOrder) {
  const std::string text = with_nic(
      "naem = \"x\"\n"
      "[tcp]\n"
      "rto_min_us = 7\n"
      "pacing = \"yes\"\n"
      "[poller]\n"
      "mode = \"automatic\"\n");
  const auto result = parse(text, "f.conf");
  EXPECT_FALSE(result.fabric);
  EXPECT_EQ(result.failure, LoadFailure::kBroken);
  ASSERT_EQ(result.problems.size(), 4U);
  EXPECT_EQ(result.problems[0].where, "f.conf:2:1");
  EXPECT_EQ(result.problems[1].where, "f.conf:4:14");
  EXPECT_EQ(result.problems[2].where, "f.conf:5:10");
  EXPECT_EQ(result.problems[3].where, "f.conf:7:8");
}

// --- One message each ----------------------------------------------------------------------------

struct Case {
  const char* name;
  std::string text;
  const char* where;  // Line and column.
  const char* what;   // Part of the message.
  const char* mend = "";
  friend void PrintTo(const Case& row, std::ostream* out) { *out << row.text; }
};

class Message : public testing::TestWithParam<Case> {};

TEST_P(Message, NamesPlaceValueAndMend) {
  const auto result = parse(GetParam().text, "f.conf");
  EXPECT_FALSE(result.fabric);
  ASSERT_EQ(result.problems.size(), 1U)
      << (result.problems.size() > 1 ? to_string(result.problems[1]) : "");
  const Problem& problem = result.problems.front();
  EXPECT_EQ(problem.where, std::string("f.conf:") + GetParam().where);
  EXPECT_THAT(problem.what, HasSubstr(GetParam().what));
  EXPECT_THAT(problem.mend, HasSubstr(GetParam().mend));
  EXPECT_FALSE(problem.mend.empty());
}

std::string two_nics(const std::string& from, const std::string& to) {
  std::string second = replaced(kNic, "ztcp0", "ztcp1");
  second = replaced(second, "10.0.0.1", "10.0.0.2");
  second = replaced(second, "00:01", "00:02");
  second = replaced(second, "a.sock", "b.sock");
  return std::string("schema = 1\n") + kNic + replaced(second, from, to);
}

std::string mesh_nic(const std::string& name, int number, int queues) {
  const std::string n = std::to_string(number);
  return "[[nic]]\nname = \"" + name + "\"\ndriver = \"memif\"\naddress = \"10.0.0." + n +
         "/24\"\nmac = \"02:00:00:00:00:0" + n +
         "\"\nmemif_socket = \"mesh\"\nmemif_role = \"mesh\"\nqueues = " + std::to_string(queues) +
         "\n";
}

INSTANTIATE_TEST_SUITE_P(
    File, Message,
    testing::Values(
        Case{"syntax", "schema = 1\nname = \n", "2:8", "not TOML"},
        // An assertion in the parser once made an abort of this.
        Case{"header_without_key", "[=]\n", "1:2", "not TOML"},
        // So did a letter that TOML has no place for.
        Case{"letter_beyond_ascii", "schema = 1 # d\u00e9j\u00e0\nr\u00e9seau = 1\n", "2:2",
             "beyond ASCII", "quotes"},
        Case{"beyond_ascii_after_string", "name = 'caf\u00e9\\' \u00e9\n", "1:16", "beyond ASCII"},
        Case{"beyond_ascii_in_long_string", "name = \"\"\"\\\u0163\"\"\"\n", "1:12",
             "beyond ASCII"},
        // To the parser the string starts elsewhere than to the eye.
        Case{"beyond_ascii_after_broken_value", "name = 5\"\"\\\"\u0163\n", "1:9", "not TOML"},
        Case{"beyond_ascii_in_broken_string", "name = \"\u0163\n", "1:10", "not TOML"},
        Case{"duplicate_key", "schema = 1\nschema = 1\n", "2:10", "not TOML"},
        Case{"no_schema", kNic, "1:1", "schema is missing", "add schema"},
        Case{"newer_schema", "unheard_of = 1\nschema = 2\n", "2:10",
             "written by a newer ztcp: schema 2, this one reads 1",
             "upgrade or run ztcp_setup again"},
        Case{"schema_zero", std::string("schema = 0\n") + kNic, "1:10",
             "schema = 0 is outside 1..1"},
        Case{"no_nic", "schema = 1\n", "1:1", "no [[nic]]"},
        Case{"nic_is_a_table", "schema = 1\n[nic]\nname = \"x\"\n", "2:1", "nic is a table",
             "[[nic]]"},
        Case{"nic_list_of_numbers", "schema = 1\nnic = [1]\n", "2:8", "nic holds 1", "[[nic]]"},
        Case{"section_is_a_value", with_nic("tcp = 1"), "2:7", "wanted a [tcp] section"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Key, Message,
    testing::Values(
        Case{"unknown_with_nearest", with_nic("[tcp]\nrto_min_ms = 5"), "3:1",
             "unknown key \"tcp.rto_min_ms\", did you mean \"rto_min_us\"?", "write rto_min_us"},
        Case{"unknown_without_unit", nic_with("name", "mtu = 1500\nname"), "3:1",
             "did you mean \"mtu_bytes\"?"},
        Case{"unknown_section", with_nic("[messages]\n[mesages]"), "3:2",
             "unknown key \"mesages\", did you mean \"messages\"?"},
        Case{"of_another_section", with_nic("[tcp]\nflows = 2"), "3:1", "belongs to [messages]",
             "move it"},
        Case{"unlike_any", with_nic("xyzzy_plugh_foo = 1"), "2:1",
             "unknown key \"xyzzy_plugh_foo\"", "man ztcp.conf"},
        Case{"string_for_integer", with_nic("[tcp]\nrto_min_us = \"5ms\""), "3:14",
             "tcp.rto_min_us is \"5ms\", wanted an integer, 100..1000000 us", "to get 5000"},
        Case{"integer_for_string", with_nic("name = 5"), "2:8", "name is 5, wanted a string"},
        Case{"float_for_integer", with_nic("[tcp]\nrto_min_us = 5000.5"), "3:14",
             "wanted an integer"},
        Case{"integer_for_boolean", with_nic("[tcp]\npacing = 1"), "3:10", "wanted true or false"},
        Case{"integer_for_choice", with_nic("[poller]\nmode = 1"), "3:8", "wanted one of"},
        Case{"table_for_value", with_nic("[tcp]\npacing = {}"), "3:10", "tcp.pacing is a table"},
        Case{"below_range", with_nic("[messages]\nflows = 0"), "3:9",
             "messages.flows = 0 is outside 1..4 TCP flows"},
        Case{"above_range", with_nic("[messages]\nlisten_port = 65536"), "3:15",
             "messages.listen_port = 65536 is outside 1..65535"},
        Case{"beyond_64_bit", with_nic("[messages]\nlisten_port = 99999999999999999999"), "3:35",
             "not TOML"},
        Case{"choice", with_nic("[poller]\nmode = \"dedicatd\""), "3:8",
             "did you mean \"dedicated\"?"},
        Case{"integers_type", with_nic("[poller]\ncpus = 3"), "3:8", "wanted a list of integers"},
        Case{"integers_range", with_nic("[poller]\ncpus = [1, -1]"), "3:12",
             "poller.cpus = -1 is outside 0..8191"},
        Case{"nul_in_string", with_nic("run_dir = \"a\\u0000b\""), "2:11", "NUL"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Meaning, Message,
    testing::Values(
        Case{"fabric_name", with_nic("name = \"a b\""), "2:8", "name = \"a b\" is not up to 63"},
        Case{"empty_run_dir", with_nic("run_dir = \"\""), "2:11", "run_dir is empty"},
        Case{"machine_id", with_nic("[host]\nmachine_id = \"abc\""), "3:14",
             "host.machine_id = \"abc\" is not 32 hex digits"},
        Case{"page_size", with_nic("[hugepages]\npage_kib = 4"), "3:12",
             "hugepages.page_kib = 4 is not 0, 2048 or 1048576"},
        Case{"no_pages_for_pci", std::string("schema = 1\n") + kPciNic, "1:1",
             "hugepages.page_kib = 0, but nic \"ztcp0\" is on PCI"},
        Case{"chunk_not_of_4_kib", with_nic("[messages]\nmax_chunk_kib = 6"), "3:17",
             "max_chunk_kib = 6 is not a multiple of 4", "write 8"},
        Case{"cluster_key_length", with_nic("[messages]\ncluster_key = \"abc\""), "3:15",
             "cluster_key has 3 characters", "openssl rand"},
        Case{"cluster_key_zero",
             with_nic("[messages]\ncluster_key = \"" + std::string(64, '0') + "\""), "3:15",
             "all zeros"},
        Case{"timeout_below_rto", with_nic("[tcp]\nrto_min_us = 1000000\nuser_timeout_ms = 500"),
             "4:19", "tcp.user_timeout_ms = 500 ms is shorter than tcp.rto_min_us = 1000000 us"},
        Case{"cpu_twice", with_nic("[poller]\ncpus = [1, 2, 1]"), "3:8", "names CPU 1 twice"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Nic, Message,
    testing::Values(
        Case{"name_missing", nic_with("name = \"ztcp0\"\n", ""), "2:1", "nic[0].name is missing"},
        Case{"driver_missing", nic_with("driver = \"memif\"\n", ""), "2:1",
             "nic[0].driver is missing"},
        Case{"address_missing", nic_with("address = \"10.0.0.1/24\"\n", ""), "2:1",
             "nic[0].address is missing"},
        Case{"mac_missing", nic_with("mac = \"02:00:00:00:00:01\"\n", ""), "2:1",
             "mac is missing; driver = \"memif\" needs it"},
        Case{"blank_in_socket", nic_with("a.sock", "/my fabric/a.sock"), "7:16",
             "memif_socket = \"/my fabric/a.sock\" has a blank in its path", "no blanks"},
        Case{"comma_in_socket", nic_with("a.sock", "/a,b/a.sock"), "7:16", "has a ',' in its path",
             "no blanks"},
        Case{"equals_in_socket", nic_with("a.sock", "/a=b/a.sock"), "7:16", "has a '=' in its path",
             "no blanks"},
        Case{"list_in_socket", nic_with("a.sock", "/a[b]/a.sock"), "7:16", "has a '[' in its path",
             "no blanks"},
        Case{"mesh_of_one", nic_with("a.sock\"\n", "mesh\"\nmemif_role = \"mesh\"\n"), "8:14",
             "nic \"ztcp0\" is alone in the mesh of memif_socket",
             "give all NICs of a mesh the same memif_socket"},
        Case{"queues_of_no_mesh", nic_with("a.sock\"\n", "a.sock\"\nqueues = 2\n"), "8:10",
             "queues = 2, but nic \"ztcp0\" is of no mesh", "remove queues"},
        Case{"too_many_queues", nic_with("a.sock\"\n", "a.sock\"\nqueues = 9\n"), "8:10",
             "queues = 9 is outside 1..8"},
        Case{"socket_missing", nic_with("memif_socket = \"a.sock\"\n", ""), "2:1",
             "memif_socket is missing; driver = \"memif\" needs it"},
        Case{"pci_missing",
             std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") +
                 replaced(kPciNic, "pci = \"0000:3b:00.0\"\n", ""),
             "4:1", "pci is missing; driver = \"pci\" needs it"},
        Case{"tap_missing",
             replaced(nic_with("\"memif\"", "\"tap\""), "memif_socket = \"a.sock\"\n", ""), "2:1",
             "tap_interface is missing; driver = \"tap\" needs it"},
        Case{"key_of_other_driver", nic_with("name", "pci = \"0000:3b:00.0\"\nname"), "3:7",
             "pci is for driver = \"pci\", this NIC has \"memif\"", "remove pci"},
        Case{"driver_unknown", nic_with("\"memif\"", "\"memfi\""), "4:10",
             "did you mean \"memif\"?"},
        Case{"name_form", nic_with("ztcp0", "a/b"), "3:8", "name = \"a/b\" is not up to 31"},
        Case{"pci_form",
             std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") +
                 replaced(kPciNic, "0000:3b:00.0", "3b:00.0"),
             "7:7", "pci = \"3b:00.0\" is not a PCI address"},
        Case{"gpu_pci_form", nic_with("name", "gpu_pci = \"0000:3B:00.0\"\nname"), "3:11",
             "gpu_pci = \"0000:3B:00.0\" is not a PCI address"},
        Case{"gpu_uuid_form", nic_with("name", "gpu_uuid = \"0\"\nname"), "3:12",
             "gpu_uuid = \"0\" is not GPU-"},
        Case{"address_form", nic_with("10.0.0.1/24", "10.0.0.1"), "5:11",
             "nic[0].address = \"10.0.0.1\" is not an address with prefix length"},
        Case{"address_multicast", nic_with("10.0.0.1/24", "224.0.0.1/24"), "5:11",
             "is not an address of a host"},
        Case{"address_loopback", nic_with("10.0.0.1/24", "127.0.0.1/8"), "5:11",
             "is not an address of a host"},
        Case{"address_of_network", nic_with("10.0.0.1/24", "10.0.0.0/24"), "5:11",
             "is the address of the network itself"},
        Case{"address_broadcast", nic_with("10.0.0.1/24", "10.0.0.255/24"), "5:11",
             "is the network's broadcast address"},
        Case{"mac_form", nic_with("02:00:00:00:00:01", "02:00"), "6:7", "is not a MAC address"},
        Case{"mac_zero", nic_with("02:00:00:00:00:01", "00:00:00:00:00:00"), "6:7",
             "can't belong to a NIC"},
        Case{"mac_multicast", nic_with("02:00:00:00:00:01", "01:00:5e:00:00:01"), "6:7",
             "can't belong to a NIC"},
        Case{"gateway_form", nic_with("name", "gateway = \"10.0.0\"\nname"), "3:11",
             "is not an IPv4 address"},
        Case{"gateway_is_self", nic_with("name", "gateway = \"10.0.0.1\"\nname"), "3:11",
             "is the NIC itself"},
        Case{"vlan", nic_with("name", "vlan_id = 4095\nname"), "3:11", "is outside 0..4094"},
        Case{"mtu_small", nic_with("name", "mtu_bytes = 575\nname"), "3:13",
             "mtu_bytes = 575 is outside 576..65280 bytes"},
        Case{"mtu_large", nic_with("name", "mtu_bytes = 65281\nname"), "3:13",
             "mtu_bytes = 65281 is outside 576..65280 bytes"},
        Case{"mtu_pci",
             std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") +
                 replaced(kPciNic, "name", "mtu_bytes = 9217\nname"),
             "5:13", "mtu_bytes = 9217 is outside 576..9216 bytes for driver = \"pci\""},
        Case{"same_name", two_nics("ztcp1", "ztcp0"), "9:8",
             "nic[1].name = \"ztcp0\" stands already in line 3"},
        Case{"same_address", two_nics("10.0.0.2/24", "10.0.0.1/16"), "11:11",
             "nic[1].address = \"10.0.0.1\" stands already in line 5"},
        Case{"same_mac", two_nics("00:02", "00:01"), "12:7",
             "nic[1].mac = \"02:00:00:00:00:01\" stands already in line 6"},
        Case{"unequal_queues", "schema = 1\n" + mesh_nic("ztcp0", 1, 2) + mesh_nic("ztcp1", 2, 4),
             "17:10", "nic \"ztcp1\" has 4 queues and \"ztcp0\" of the same mesh 2",
             "the same queues for all NICs"},
        Case{"same_socket", two_nics("b.sock", "a.sock"), "13:16", "set memif_id"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Kinds, Message,
    testing::Values(
        Case{"interface_missing", of(kSocketNic, "interface = \"eth1\"\n", ""), "2:1",
             "interface is missing; driver = \"socket\" needs it"},
        Case{"interface_form", of(kSocketNic, "eth1", "a/b"), "6:13",
             "interface = \"a/b\" is not an interface name"},
        Case{"v6_of_userspace_tcp", nic_with("10.0.0.1/24", "2001:db8::5/64"), "5:11",
             "is IPv6, which driver = \"memif\" does not speak", "IPv4"},
        Case{"v6_loopback_of_userspace_tcp", nic_with("10.0.0.1/24", "::1/128"), "5:11",
             "is not an address of a host"},
        Case{"v6_multicast", of(kSocketNic, "10.0.0.1/24", "ff02::1/64"), "5:11",
             "is not an address of a host"},
        Case{"v6_unspecified", of(kSocketNic, "10.0.0.1/24", "::/64"), "5:11",
             "is not an address of a host"},
        Case{"v6_of_network", of(kSocketNic, "10.0.0.1/24", "2001:db8::/64"), "5:11",
             "is the address of the network itself"},
        Case{"v6_length", of(kSocketNic, "10.0.0.1/24", "2001:db8::1/129"), "5:11",
             "is not an address with prefix length"},
        Case{"mac_of_the_kernels", of(kSocketNic, "name", "mac = \"02:00:00:00:00:01\"\nname"),
             "3:7", "mac is for driver = \"pci\", \"memif\", \"tap\", this NIC has \"socket\"",
             "remove mac"},
        Case{"mtu_of_the_kernels", of(kSocketNic, "name", "mtu_bytes = 9000\nname"), "3:13",
             "mtu_bytes is for driver = \"pci\", \"memif\", \"tap\""},
        Case{"ports_of_another", nic_with("name", "first_port = 9\nname"), "3:14",
             "first_port is for driver = \"socket\", \"verbs\", this NIC has \"memif\""},
        Case{"port_range", of(kSocketNic, "name", "first_port = 0\nname"), "3:14",
             "first_port = 0 is outside 1..65535"},
        Case{"ports_in_turn", of(kSocketNic, "name", "first_port = 9\nlast_port = 8\nname"), "4:13",
             "last_port = 8 is below first_port = 9", "larger one as last_port"},
        Case{"first_port_above", of(kSocketNic, "name", "first_port = 9000\nname"), "3:14",
             "last_port = 7535 is below first_port = 9000"},
        Case{"same_interface",
             of(kSocketNic, "name", "name") +
                 replaced(replaced(kSocketNic, "ztcp0", "ztcp1"), "0.1/", "0.2/"),
             "11:13", "nic[1].interface = \"eth1\" stands already in line 6"},
        Case{"device_missing", of(kVerbsNic, "device = \"mlx5_0\"\n", ""), "2:1",
             "device is missing; driver = \"verbs\" needs it"},
        Case{"device_form", of(kVerbsNic, "mlx5_0", "/dev/infiniband"), "6:10",
             "device = \"/dev/infiniband\" is not a device name"},
        Case{"device_of_another", of(kSocketNic, "name", "device = \"mlx5_0\"\nname"), "3:10",
             "device is for driver = \"verbs\", this NIC has \"socket\""},
        Case{"device_port_range", of(kVerbsNic, "name", "device_port = 0\nname"), "3:15",
             "device_port = 0 is outside 1..255"},
        Case{"gid_range", of(kVerbsNic, "name", "gid_index = 256\nname"), "3:13",
             "gid_index = 256 is outside -1..255"},
        Case{"traffic_class_range", of(kVerbsNic, "name", "traffic_class = -2\nname"), "3:17",
             "traffic_class = -2 is outside -1..255"},
        Case{"same_device", of(kVerbsNic, "name", "name") + replaced(kVerbsNic, "ztcp0", "ztcp1"),
             "11:10", "nic[1].device = \"mlx5_0 port 1\" stands already in line 6"}),
    [](const auto& row) { return row.param.name; });

TEST(Parse, RefusesTheSamePciFunctionTwice) {
  std::string second = replaced(kPciNic, "ztcp0", "ztcp1");
  second = replaced(second, "10.0.0.1", "10.0.0.2");
  second = replaced(second, "00:01", "00:02");
  const auto result =
      parse(std::string("schema = 1\n[hugepages]\npage_kib = 2048\n") + kPciNic + second, "f.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what,
              HasSubstr("nic[1].pci = \"0000:3b:00.0\" stands already in line 7"));
}

TEST(Parse, NeverShowsTheClusterKey) {
  const auto result = parse(with_nic("[messages]\ncluster_key = \"feedface\""), "f.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(to_string(result.problems[0]), testing::Not(HasSubstr("feedface")));
}

TEST(Parse, RefusesWhatIsNoConfigFile) {
  const auto result = parse(std::string((1U << 20) + 1, '#'), "f.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("not a config file"));
}

// --- Files ---------------------------------------------------------------------------------------

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ztcp-load-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
  LiveMachine machine_;
};

TEST_F(Folder, AMissingFileSaysWhatToRun) {
  const std::string path = path_ / "ztcp.conf";
  const auto result = load(machine_, path);
  EXPECT_FALSE(result.fabric);
  EXPECT_EQ(result.failure, LoadFailure::kMissing);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(to_string(result.problems[0]), AllOf(HasSubstr(path), HasSubstr("ztcp_setup")));
}

TEST_F(Folder, AFolderIsUnreadable) {
  const auto result = load(machine_, path_);
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("is a folder"));
}

// Opening a pipe waits for its other end, for ever.
TEST_F(Folder, APipeIsUnreadableAtOnce) {
  const std::string path = path_ / "it's";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ::alarm(10);
  const auto result = load(machine_, path);
  ::alarm(0);
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("is a pipe"));
  EXPECT_THAT(result.problems[0].mend, HasSubstr("'\\''s'"));
}

TEST_F(Folder, ADeviceIsNotOpened) {
  const auto result = load(machine_, "/dev/null");
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  EXPECT_THAT(result.problems[0].what, HasSubstr("is a device"));
}

TEST_F(Folder, AFileWithoutPermissionIsUnreadable) {
  const std::string path = path_ / "ztcp.conf";
  std::ofstream(path) << with_nic("");
  ::chmod(path.c_str(), 0);
  ::chmod(path_.c_str(), 0755);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto result = load(machine_, path);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("Permission denied"));
}

TEST_F(Folder, OnErrorComesFromTheEnvironment) {
  const std::string path = path_ / "ztcp.conf";
  std::ofstream(path) << with_nic("");
  ::setenv("ZTCP_ON_ERROR", "fallback", 1);
  const auto result = load(machine_, path);
  ::unsetenv("ZTCP_ON_ERROR");
  ASSERT_TRUE(result.fabric);
  EXPECT_EQ(result.fabric->on_error, OnError::kFallback);
}

}  // namespace
}  // namespace ztcp::config
