// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// schema.toml, settings.h, load() and to_toml() must agree.
#include "config/schema.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/fields.h"
#include "config/file/load.h"
#include "tests/unit/config/file/some_fabric.h"

namespace ztcp::config {
namespace {

using test::some_fabric;
using test::some_nic;

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
  EXPECT_EQ(find_key("tcp", "congestion_control")->choices, joined(kCongestionControlNames));
  EXPECT_EQ(find_key("nic", "driver")->choices, joined(kNicDriverNames));
  EXPECT_EQ(find_key("nic", "memif_role")->choices, joined(kMemifRoleNames));
  EXPECT_EQ(find_key("nic", "relaxed_ordering")->choices, joined(kOnOffNames));
}

TEST(Schema, AcceptsThisVersion) {
  EXPECT_EQ(find_key("", "schema")->min, 1);
  EXPECT_EQ(find_key("", "schema")->max, kSchemaVersion);
}

// A file with every default written out must give the same as a file without them.
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

TEST(Nearest, FindsTheIntendedWord) {
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
