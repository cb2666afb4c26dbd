// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Journals on disk outlive the ztcp_setup that wrote them: those of tests/data/setup/journals must
// be undone as their writer did, and written today as they were then.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/journal_stories.h"
#include "tests/unit/tools/ztcp_setup/machine_text.h"
#include "tools/ztcp_setup/run/preview.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using test::JournalStory;
using test::Lines;
using test::lines_of;

// Absent: no such file.
std::optional<std::string> golden_file(const std::string& name) {
  std::ifstream file(ZTCP_SETUP_JOURNALS "/" + name, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Lines lines_in(const std::string& text) {
  std::istringstream stream(text);
  Lines lines;
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

// Sections of STORY.golden: "undo".
std::map<std::string, std::string> sections_of(const std::string& text) {
  std::istringstream stream(text);
  std::map<std::string, std::string> sections;
  std::string* section = nullptr;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("["))
      section = &sections[line.substr(1, line.size() - 2)];
    else
      *section += line + "\n";
  }
  return sections;
}

std::string operations(const std::vector<std::string>& told) {
  std::string text;
  for (const std::string& one : told) text += "> " + one + "\n";
  return text;
}

std::string differences(const Lines& bare, const Lines& now) {
  std::string text;
  for (const std::string& line : bare)
    if (!now.contains(line)) text += "- " + line + "\n";
  for (const std::string& line : now)
    if (!bare.contains(line)) text += "+ " + line + "\n";
  return text;
}

Lines changed(Lines lines, const std::string& differences) {
  for (const std::string& line : lines_in(differences)) {
    if (line.starts_with("- ")) lines.erase(line.substr(2));
    if (line.starts_with("+ ")) lines.insert(line.substr(2));
  }
  return lines;
}

std::optional<std::string> journal_of(const FakeHost& host) {
  const auto file = host.state.nodes.find(Journal::kPath);
  if (file == host.state.nodes.end()) return std::nullopt;
  return file->second.text;
}

class GoldenJournal : public testing::TestWithParam<JournalStory> {
 protected:
  const Lines bare_ = lines_in(golden_file("bare.machine").value_or(""));
  const std::optional<std::string> journal_ = golden_file(GetParam().name + ".journal.json");
  const std::map<std::string, std::string> golden_ =
      sections_of(golden_file(GetParam().name + ".golden").value_or(""));
};

TEST_P(GoldenJournal, UndoMatchesTheStoredOne) {
  FakeHost host;
  host.state = test::state_of(changed(bare_, golden_.at("then")));
  if (journal_) host.add_file(Journal::kPath, *journal_, {0600, 0, 0});
  test::undo(host);
  EXPECT_EQ(operations(host.told), golden_.at("undo"));
  EXPECT_EQ(differences(bare_, lines_of(host.state)), golden_.at("left"));
}

TEST_P(GoldenJournal, TextMatchesTheStoredOne) {
  FakeHost host = test::story_machine();
  ASSERT_EQ(lines_of(host.state), bare_);
  GetParam().tell(host);
  EXPECT_EQ(journal_of(host), journal_);
  EXPECT_EQ(differences(bare_, lines_of(host.state)), golden_.at("then"));
  if (GetParam().untouched) {
    EXPECT_EQ(operations(host.told), golden_.at("set up"));
  }
}

INSTANTIATE_TEST_SUITE_P(Stories, GoldenJournal, testing::ValuesIn(test::journal_stories()),
                         [](const auto& story) {
                           std::string name = story.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Lost fields, other types or values, lost or duplicate entries: the journal is refused, or undone
// as far as possible, and nothing else happens.
TEST(DamagedJournal, ADamagedJournalIsRefusedOrUndone) {
  std::size_t refused = 0;
  std::size_t undone = 0;
  std::mt19937 random(7);
  for (const JournalStory& story : test::journal_stories()) {
    const auto text = golden_file(story.name + ".journal.json");
    if (!text) continue;
    for (int round = 0; round < 12; ++round) {
      auto json = nlohmann::ordered_json::parse(*text);
      auto& entries = json["entries"];
      if (entries.empty()) continue;
      const std::size_t at = random() % entries.size();
      auto* part = &entries[at];
      for (const char* inner : {"wish", "before"})
        if (random() % 2 == 0 && (*part)[inner].is_object() && !(*part)[inner].empty()) {
          part = &(*part)[inner];
          break;
        }
      auto field = part->begin();
      std::advance(field, random() % part->size());
      const nlohmann::ordered_json values[] = {
          nullptr, "", 7, -1, "../../x\n", true, nlohmann::ordered_json::array({"a", 1})};
      if (round == 0)
        entries.push_back(entries[at]);
      else if (round == 1)
        entries.erase(at);
      else
        *field = values[random() % std::size(values)];
      FakeHost host = test::bare_machine();
      host.add_folder(Journal::kFolder, {0700, 0, 0});
      host.add_file(Journal::kPath, json.dump(), {0600, 0, 0});
      auto journal = Journal::open(host);
      if (!journal) {
        ++refused;
        EXPECT_FALSE(journal.error().mend.empty());
        continue;
      }
      ++undone;
      preview_undo(host, *journal);
      EXPECT_EQ(host.changes, 0U);
      try {
        revert_all(host, *journal, {});
      } catch (const std::logic_error&) {
        // Thrown by the machine in memory, which has no such NIC, and has only numbers as values.
      }
    }
  }
  EXPECT_GT(refused, 50U);
  EXPECT_GT(undone, 50U);
}

}  // namespace
}  // namespace ztcp::setup
