// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The journal's text, and malformed texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;

std::string why_not_read(const std::string& text) {
  const auto read = read_journal(text, Journal::kPath);
  return read ? "" : to_string(read.error());
}

TEST(JournalJson, ContradictoryEntriesAreRefused) {
  const Entry notice{
      {"n", resource::Notice{{"update-grub"}}}, resource::Notice::Before{true}, true};
  const Entry file{
      {"a file", resource::File{"/etc/a", "b", 0644, ""}}, resource::File::Before{}, true};
  EXPECT_THAT(why_not_read(journal_text({{notice, file, notice}, true})),
              HasSubstr("notice update-grub is listed twice"));
  EXPECT_THAT(why_not_read(journal_text({{file, file}, true})),
              HasSubstr("/etc/a is listed twice"));
  for (const resource::Notice& nothing : {resource::Notice{}, resource::Notice{{""}}})
    EXPECT_THAT(why_not_read(journal_text({{{{"n", nothing}, std::nullopt, true}}, true})),
                HasSubstr("names no program"));
  std::string text = journal_text({{file}, true});
  text.replace(text.find("0644"), 4, "200644");
  EXPECT_THAT(why_not_read(text), HasSubstr("no mode: 200644"));
}

TEST(JournalJson, ReadsBackItsOwnText) {
  InterfaceState link;
  link.name = "eth1";
  link.mac = "02:00:00:00:00:01";
  link.mtu_bytes = 9000;
  link.up = true;
  link.addresses = {{"ip address add 10.0.0.1/24 dev eth1", "0a0b", 1234}};
  link.sysctls = {{"/proc/sys/net/ipv4/conf/eth1/rp_filter", "2\n"}};
  link.settings = {{"ring", {{"tx", 512}, {"rx", 1024}}}, {"features", {{"rx-gro", 0}}}};
  InterfaceState child = link;
  child.name = "eth1.7";
  child.kind = "vlan";
  link.children = {child};
  std::vector<Entry> entries;
  entries.push_back({{"a file", resource::File{"/etc/a", "b\xff", 0600, "ztcp"}},
                     resource::File::Before{true, "old\x80", {0644, 1, 2}, {"/etc/x"}},
                     true});
  entries.push_back({{"a folder", resource::Folder{"/etc/b", 01777, "alice", "ztcp"}},
                     resource::Folder::Before{true, {0755, 0, 0}, {}},
                     false});
  entries.push_back(
      {{"a value", resource::Value{"/sys/x", "3", true}}, resource::Value::Before{"1", "3"}, true});
  entries.push_back({{"held", resource::Module{"vfio-pci"}}, std::nullopt, true});
  entries.push_back({{"m", resource::Mount{"/mnt", "hugetlbfs", "mode=1770"}},
                     resource::Mount::Before{{"/mnt"}},
                     true});
  entries.push_back({{"d", resource::Driver{"0000:01:00.0", "vfio-pci"}},
                     resource::Driver::Before{"1af4:1041", "virtio-pci", "", {link}},
                     true});
  entries.push_back({{"x", resource::Access{"0000:01:00.0", "", "ztcp", 0660}},
                     resource::Access::Before{{0600, 0, 0}},
                     true});
  entries.push_back({{"u", resource::Unit{"a.service"}}, resource::Unit::Before{}, true});
  entries.push_back({{"b", resource::BootArguments{{"a=1", "b"}}},
                     resource::BootArguments::Before{{{"/boot/vmlinuz", "ro"}}},
                     true});
  entries.push_back(
      {{"n", resource::Notice{{"update-grub"}}}, resource::Notice::Before{true}, false});
  const std::string text = journal_text({entries, true});
  const auto read = read_journal(text, "journal");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_TRUE(read->complete);
  ASSERT_EQ(read->entries.size(), entries.size());
  EXPECT_EQ(journal_text(*read), text);
  const auto& driver = std::get<resource::Driver::Before>(*read->entries.at(5).before);
  EXPECT_EQ(driver.links.front(), link);
  EXPECT_EQ(std::get<resource::File::Before>(*read->entries.at(0).before).text, "old\x80");
  EXPECT_FALSE(read->entries.at(3).before.has_value());
}

TEST(JournalJson, ReadsTheFirstSchemaWhichHadNoSettings) {
  InterfaceState link;
  link.name = "eth1";
  link.settings = {{"ring", {{"rx", 1024}}}};
  const Entry entry{{"d", resource::Driver{"0000:01:00.0", "vfio-pci"}},
                    resource::Driver::Before{"1af4:1041", "virtio-pci", "", {link}},
                    true};
  auto json = nlohmann::json::parse(journal_text({{entry}, true}));
  json["schema"] = 1;
  json["entries"][0]["before"]["links"][0].erase("settings");
  const auto read = read_journal(json.dump(), "journal");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  link.settings.clear();
  EXPECT_EQ(std::get<resource::Driver::Before>(*read->entries.at(0).before).links.front(), link);
}

TEST(JournalJson, RefusesANewerOneAndNamesIt) {
  EXPECT_THAT(why_not_read(R"({"schema": 3, "entries": []})"),
              HasSubstr("/var/lib/ztcp/journal.json: was written by a newer ztcp_setup: schema 3"));
}

TEST(JournalJson, SaysWhyItCanNotBeRead) {
  EXPECT_THAT(why_not_read("{\"schema\""), HasSubstr("can't be read"));
  EXPECT_THAT(why_not_read(R"({"schema": 1, "complete": true})"), HasSubstr("entries"));
  EXPECT_THAT(
      why_not_read(
          R"({"schema":1,"complete":true,"entries":[{"why":"","done":true,"before":null,"wish":{"kind":"spell"}}]})"),
      HasSubstr("spell"));
}

}  // namespace
}  // namespace ztcp::setup
