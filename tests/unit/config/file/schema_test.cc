// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// schema.toml against settings.h, load() and to_toml(): what stands in two places must agree.
#include "config/file/schema.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/fields.h"
#include "config/file/load.h"

namespace ztcp::config {
namespace {

// A NIC that satisfies every driver's needs but the name; keys of other drivers come with it.
Nic some_nic(NicDriver driver) {
  Nic nic;
  nic.name = "ztcp0";
  nic.driver = driver;
  nic.address = *parse_ipv4_prefix("10.0.0.1/24");
  if (driver != NicDriver::kSocket && driver != NicDriver::kVerbs)
    nic.mac = *parse_mac("02:00:00:00:00:01");
  if (driver == NicDriver::kPci) nic.pci = "0000:3b:00.0";
  if (driver == NicDriver::kMemif) nic.memif_socket = "/run/a.sock";
  if (driver == NicDriver::kTap) nic.tap_interface = "tap0";
  if (driver == NicDriver::kSocket) nic.interface = "eth0";
  if (driver == NicDriver::kVerbs) nic.device = "mlx5_0";
  return nic;
}

Fabric some_fabric(NicDriver driver) {
  Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  if (driver == NicDriver::kPci) fabric.hugepages.page_kib = 2048;
  fabric.nics.push_back(some_nic(driver));
  return fabric;
}

using Names = std::set<std::string>;

Names walked() {
  Names names;
  Fabric fabric;
  Nic nic;
  const auto in = [&](std::string_view section) {
    return [&names, section](std::string_view name, const auto&) {
      names.insert(std::string(section) + "." + std::string(name));
    };
  };
  visit_top(fabric, in(""));
  for_each_section(fabric, [&](std::string_view section, auto&& walk) { walk(in(section)); });
  visit_nic(nic, in("nic"));
  return names;
}

Names described() {
  Names names;
  for (const Key& key : keys())
    names.insert(std::string(key.section) + "." + std::string(key.name));
  return names;
}

TEST(Schema, DescribesExactlyTheKeysThatAreRead) { EXPECT_EQ(walked(), described()); }

TEST(Schema, EverySectionHasKeys) {
  for (const Section& section : sections())
    EXPECT_TRUE(std::any_of(keys().begin(), keys().end(), [&](const Key& key) {
      return key.section == section.name;
    })) << section.name;
}

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : "|") + std::string(name);
  return text;
}

TEST(Schema, ChoicesAreTheEnumerators) {
  EXPECT_EQ(find_key("host", "class")->choices, joined(kHostClassNames));
  EXPECT_EQ(find_key("poller", "mode")->choices, joined(kPollerModeNames));
  EXPECT_EQ(find_key("nic", "driver")->choices, joined(kNicDriverNames));
  EXPECT_EQ(find_key("nic", "memif_role")->choices, joined(kMemifRoleNames));
  EXPECT_EQ(find_key("nic", "relaxed_ordering")->choices, joined(kOnOffNames));
}

TEST(Schema, AcceptsThisVersion) {
  EXPECT_EQ(find_key("", "schema")->min, 1);
  EXPECT_EQ(find_key("", "schema")->max, kSchemaVersion);
}

// A file that spells out every default gives what a file without them gives, which is what
// settings.h says.
TEST(Schema, DefaultsAreThoseOfSettings) {
  std::string text = "schema = 1\n";
  for (const Section& section : sections()) {
    if (section.name == "nic") continue;
    if (!section.name.empty()) text += "[" + std::string(section.name) + "]\n";
    for (const Key& key : keys())
      if (key.section == section.name && !key.default_text.empty())
        text += std::string(key.name) + " = " + std::string(key.default_text) + "\n";
  }
  text +=
      "[[nic]]\nname = \"ztcp0\"\ndriver = \"memif\"\naddress = \"10.0.0.1/24\"\n"
      "mac = \"02:00:00:00:00:01\"\nmemif_socket = \"/run/a.sock\"\n";
  for (const Key& key : keys())
    if (key.section == "nic" && !key.default_text.empty() && is_for(key, "memif") &&
        !lists(key.required_for, "memif"))
      text += std::string(key.name) + " = " + std::string(key.default_text) + "\n";
  const auto result = parse(text, "/etc/ztcp.conf");
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front()) << "\n" << text;
  EXPECT_EQ(*result.fabric, some_fabric(NicDriver::kMemif));
}

class RoundTrip : public testing::TestWithParam<NicDriver> {};

TEST_P(RoundTrip, DefaultsComeBack) {
  const Fabric fabric = some_fabric(GetParam());
  const auto result = parse(to_toml(fabric), fabric.path);
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
  EXPECT_EQ(*result.fabric, fabric);
}

TEST_P(RoundTrip, EveryValueComesBack) {
  Fabric fabric = some_fabric(GetParam());
  fabric.name = "rack-7.prod_1";
  fabric.run_dir = "/run/a \"quoted\" \\ folder";
  fabric.host = {"0123456789abcdef0123456789abcdef", "gpu-7", HostClass::kNoIommu, "alice", "ztcp"};
  fabric.hugepages = {1048576, 64, 0};
  fabric.messages = {1, 2, 3, 8, 12, 5000, 5100, 5200, 5, 6000, std::string(63, 'a') + "1"};
  fabric.tcp = {100, 200, 300, 400, 500, 64, 16, false};
  fabric.poller = {PollerMode::kShared, 7, 9, {3, 1}};
  Nic& nic = fabric.nics.front();
  if (is_for(*find_key("nic", "mtu_bytes"), name_of(nic.driver))) {
    nic.gateway = parse_ipv4("10.0.0.254");
    nic.vlan_id = 12;
    nic.mtu_bytes = 8500;
  }
  nic.numa_node = 1;
  nic.speed_mbps = 100000;
  nic.gpu_pci = "0000:17:00.0";
  nic.gpu_uuid = "GPU-1234";
  nic.rail = 3;
  nic.plane = 1;
  if (nic.driver == NicDriver::kPci) nic.kernel_driver = "virtio-pci";
  if (nic.driver == NicDriver::kMemif) {
    nic.memif_role = MemifRole::kServer;
    nic.memif_id = 4294967295U;
  }
  if (is_for(*find_key("nic", "first_port"), name_of(nic.driver))) {
    nic.first_port = 1;
    nic.last_port = 65535;
  }
  if (nic.driver == NicDriver::kVerbs) {
    nic.device_port = 2;
    nic.gid_index = 3;
    nic.traffic_class = 106;
    nic.service_level = 15;
    nic.ack_timeout = 31;
    nic.retries = 1;
    nic.rnr_retries = 0;
    nic.pkey_index = 65535;
    nic.queue_pairs = 8;
    nic.relaxed_ordering = OnOff::kOff;
    nic.adaptive_routing_threshold_bytes = 0;
    nic.merge = "ib0";
  }
  Nic second = some_nic(GetParam());
  second.name = "ztcp1";
  second.address = *parse_ipv4_prefix("10.0.0.2/24");
  if (second.mac != MacAddress{}) second.mac = *parse_mac("02:00:00:00:00:02");
  second.pci = second.pci.empty() ? "" : "0000:5e:00.0";
  if (second.driver == NicDriver::kTap) second.tap_interface = "tap1";
  if (second.driver == NicDriver::kSocket) second.interface = "eth1";
  if (second.driver == NicDriver::kVerbs) second.device_port = 3;
  fabric.nics.push_back(second);
  const auto result = parse(to_toml(fabric), fabric.path);
  ASSERT_TRUE(result.fabric) << to_string(result.problems.front());
  EXPECT_EQ(*result.fabric, fabric);
}

INSTANTIATE_TEST_SUITE_P(Driver, RoundTrip,
                         testing::Values(NicDriver::kPci, NicDriver::kMemif, NicDriver::kTap,
                                         NicDriver::kSocket, NicDriver::kVerbs),
                         [](const auto& row) { return std::string(name_of(row.param)); });

TEST(Writer, PutsACommentAboveEachKey) {
  const std::string text = to_toml(some_fabric(NicDriver::kMemif));
  std::string previous;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line.find(" = ") != std::string::npos && line.front() != '#') {
      EXPECT_EQ(previous.substr(0, 2), "# ") << line;
    }
    EXPECT_LE(line.size(), 100U) << line;
    previous = line;
    at = end + 1;
  }
}

TEST(Nearest, FindsWhatWasMeant) {
  constexpr std::string_view kWords[] = {"flows", "listen_port", "mtu_bytes"};
  EXPECT_EQ(nearest("flow", kWords), "flows");
  EXPECT_EQ(nearest("listenport", kWords), "listen_port");
  EXPECT_EQ(nearest("mtu", kWords), "mtu_bytes");
  EXPECT_EQ(nearest("banana", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(1000, 'x'), kWords), "");
}

}  // namespace
}  // namespace ztcp::config
