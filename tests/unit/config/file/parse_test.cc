// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Parses TOML files into fabrics: keys, types and ranges, and reports of all errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/file/config_texts.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;

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

// A link-local address is meaningless without its link.
TEST(Parse, AllowsOneLinkLocalAddressOnTwoInterfaces) {
  const std::string first = replaced(kSocketNic, "10.0.0.1/24", "fe80::1/64");
  const std::string second = replaced(replaced(first, "ztcp0", "ztcp1"), "eth1", "eth2");
  EXPECT_TRUE(parse("schema = 1\n" + first + second, "ztcp.conf").fabric);
}

TEST(Parse, TakesRdmaDevices) {
  const std::string second = replaced(
      replaced(kVerbsNic, "ztcp0", "ztcp1"), "device",
      "device_port = 2\ngid_index = 3\ntraffic_class = 106\nmerge = \"ib0\"\nrail = 4\nplane = 1\n"
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
  EXPECT_EQ(result.fabric->nics[1].rail, 4);
  EXPECT_EQ(result.fabric->nics[1].plane, 1);
  EXPECT_EQ(device_name(result.fabric->nics[1]), "ib0");
  EXPECT_EQ(first.rail, -1);
  EXPECT_EQ(first.plane, -1);
  EXPECT_EQ(device_name(first), "ztcp0");
}

TEST(Parse, ResolvesPathsAgainstTheFilesFolder) {
  const auto result = parse("run_dir = \"../run\"\n" + with_nic(""), "/etc/ztcp/ztcp.conf");
  ASSERT_TRUE(result.fabric);
  EXPECT_EQ(result.fabric->run_dir, "/etc/run");
  EXPECT_EQ(result.fabric->nics.front().memif_socket, "/etc/ztcp/a.sock");
  EXPECT_EQ(result.fabric->path, "/etc/ztcp/ztcp.conf");
}

TEST(Parse, NormalizesPaths) {
  for (const char* path : {"/run/ztcp/", "/run//ztcp", "/run/./ztcp/.", "/run/x/../ztcp//"})
    EXPECT_EQ(
        parse("run_dir = \"" + std::string(path) + "\"\n" + with_nic(""), "/c").fabric->run_dir,
        "/run/ztcp")
        << path;
}

TEST(Parse, TakesAnyLanguageInStringsAndComments) {
  const auto result =
      parse("run_dir = \"/r\u00e9seau\\\"/\u7f51\" # \u7f51\u7edc 'x\n" + with_nic(""), "/c");
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
  EXPECT_EQ(result.fabric->run_dir, "/r\u00e9seau\"/\u7f51");
}

TEST(Parse, TakesBothEndsOfOneMemif) {
  const std::string server =
      replaced(kMemifNic, "\"a.sock\"", "\"a.sock\"\nmemif_role = \"server\"");
  std::string client = replaced(kMemifNic, "ztcp0", "ztcp1");
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

// A host may find its NICs itself, and still have timeouts or a key in a file.
TEST(Parse, AFileThatOnlyLacksNicsIsKeptForHostsThatFindThem) {
  const auto result = parse("schema = 1\n[tcp]\nuser_timeout_ms = 20000\n", "f.conf");
  EXPECT_FALSE(result.fabric);
  ASSERT_EQ(result.problems.size(), 1U);
  ASSERT_TRUE(result.without_nics);
  EXPECT_EQ(result.without_nics->tcp.user_timeout_ms, 20000U);
  EXPECT_FALSE(parse("schema = 1\n[tcp]\nuser_timeout_ms = -1\n", "f.conf").without_nics);
}

class ParseMessage : public MessageTest {};

TEST_P(ParseMessage, NamesPlaceValueAndMend) { judge(); }

INSTANTIATE_TEST_SUITE_P(
    File, ParseMessage,
    testing::Values(
        MessageCase{"syntax", "schema = 1\nname = 1 2\n", "2:10", "not TOML"},
        // An assertion in the parser once aborted on this.
        MessageCase{"header_without_key", "[=]\n", "1:2", "not TOML"},
        // And on a letter that TOML does not allow.
        MessageCase{"letter_beyond_ascii", "schema = 1 # d\u00e9j\u00e0\nr\u00e9seau = 1\n", "2:2",
                    "beyond ASCII", "quotes"},
        MessageCase{"beyond_ascii_after_string", "name = 'caf\u00e9\\' \u00e9\n", "1:16",
                    "beyond ASCII"},
        MessageCase{"beyond_ascii_in_long_string", "name = \"\"\"\\\u0163\"\"\"\n", "1:12",
                    "beyond ASCII"},
        // The parser sees the string begin at another place than a reader does.
        MessageCase{"beyond_ascii_after_broken_value", "name = 5\"\"\\\"\u0163\n", "1:9",
                    "not TOML"},
        MessageCase{"beyond_ascii_in_broken_string", "name = \"\u0163\n", "1:8",
                    "has no closing \""},
        MessageCase{"duplicate_key", "schema = 1\nschema = 1\n", "2:10", "not TOML"},
        MessageCase{"no_schema", kMemifNic, "1:1", "schema is missing",
                    "add schema = 1 as the first line"},
        MessageCase{"newer_schema", "unheard_of = 1\nschema = 2\n", "2:10",
                    "written by a newer ztcp: schema 2, this one reads 1",
                    "upgrade ztcp on this host; or move the file away"},
        MessageCase{"schema_zero", std::string("schema = 0\n") + kMemifNic, "1:10",
                    "schema = 0 is outside 1..1"},
        MessageCase{"no_nic", "schema = 1\n", "1:1", "no [[nic]]"},
        MessageCase{"nic_is_a_table", "schema = 1\n[nic]\nname = \"x\"\n", "2:1", "nic is a table",
                    "[[nic]]"},
        MessageCase{"nic_list_of_numbers", "schema = 1\nnic = [1]\n", "2:8", "nic holds 1",
                    "[[nic]]"},
        MessageCase{"section_is_a_value", with_nic("tcp = 1"), "2:7", "wanted a [tcp] section"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Key, ParseMessage,
    testing::Values(
        MessageCase{"unknown_with_nearest", with_nic("[tcp]\nrto_min_ms = 5"), "3:1",
                    "unknown key \"tcp.rto_min_ms\", did you mean \"rto_min_us\"?",
                    "write rto_min_us"},
        MessageCase{"unknown_without_unit", nic_with("name", "mtu = 1500\nname"), "3:1",
                    "did you mean \"mtu_bytes\"?"},
        MessageCase{"unknown_section", with_nic("[messages]\n[mesages]"), "3:2",
                    "unknown key \"mesages\", did you mean [messages]?", "write [messages]"},
        MessageCase{"section_in_capitals", with_nic("[TCP]\npacing = true"), "2:2",
                    "unknown key \"TCP\", did you mean [tcp]?", "write [tcp]"},
        MessageCase{"key_in_capitals", with_nic("[tcp]\nPacing = true"), "3:1",
                    "did you mean \"pacing\"?", "write pacing"},
        MessageCase{"of_another_section", with_nic("[tcp]\nflows = 2"), "3:1",
                    "belongs to [messages]", "move it"},
        MessageCase{"unlike_any", with_nic("xyzzy_plugh_foo = 1"), "2:1",
                    "unknown key \"xyzzy_plugh_foo\"", "man ztcp.conf"},
        MessageCase{"string_for_integer", with_nic("[tcp]\nrto_min_us = \"5ms\""), "3:14",
                    "tcp.rto_min_us is \"5ms\", wanted an integer, 100..1000000 us", "to get 5000"},
        MessageCase{"integer_for_string", with_nic("name = 5"), "2:8",
                    "name is 5, wanted a string"},
        MessageCase{"float_for_integer", with_nic("[tcp]\nrto_min_us = 5000.5"), "3:14",
                    "wanted an integer"},
        MessageCase{"integer_for_boolean", with_nic("[tcp]\npacing = 1"), "3:10",
                    "wanted true or false"},
        MessageCase{"integer_for_choice", with_nic("[poller]\nmode = 1"), "3:8", "wanted one of"},
        MessageCase{"table_for_value", with_nic("[tcp]\npacing = {}"), "3:10",
                    "tcp.pacing is a table"},
        MessageCase{"below_range", with_nic("[messages]\nlisten_port = 0"), "3:15",
                    "messages.listen_port = 0 is outside 1..65535"},
        MessageCase{"above_range_of_units", with_nic("[messages]\nflows = 9"), "3:9",
                    "messages.flows = 9 is outside 0..8 TCP flows"},
        MessageCase{"above_range", with_nic("[messages]\nlisten_port = 65536"), "3:15",
                    "messages.listen_port = 65536 is outside 1..65535"},
        MessageCase{"beyond_64_bit", with_nic("[messages]\nlisten_port = 99999999999999999999"),
                    "3:35", "not TOML"},
        MessageCase{"choice", with_nic("[poller]\nmode = \"dedicatd\""), "3:8",
                    "did you mean \"dedicated\"?"},
        MessageCase{"integers_type", with_nic("[poller]\ncpus = 3"), "3:8",
                    "wanted a list of integers"},
        MessageCase{"integers_range", with_nic("[poller]\ncpus = [1, -1]"), "3:12",
                    "poller.cpus = -1 is outside 0..8191"},
        MessageCase{"nul_in_string", with_nic("run_dir = \"a\\u0000b\""), "2:11", "NUL"}),
    [](const auto& row) { return row.param.name; });

TEST(Parse, RefusesFilesThatAreNotConfigs) {
  const auto result = parse(std::string((1U << 20) + 1, '#'), "f.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("not a config file"));
}

}  // namespace
}  // namespace ztcp::config
