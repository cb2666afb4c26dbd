// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using testing::HasSubstr;
using testing::Not;

FakeHost with_journal(const std::string& text, Ownership ownership = {0600, 0, 0}) {
  FakeHost host;
  host.add_folder(Journal::kFolder, {0700, 0, 0});
  host.add_file(Journal::kPath, text, ownership);
  return host;
}

std::string refusal(FakeHost host) {
  const auto journal = Journal::open(host);
  return journal ? "" : to_string(journal.error());
}

TEST(Journal, RefusesAJournalWritableByOthers) {
  EXPECT_THAT(refusal(with_journal("{}", {0600, 1000, 0})), HasSubstr("belongs to user 1000"));
  EXPECT_THAT(refusal(with_journal("{}", {0666, 0, 0})), HasSubstr("mode 0666"));
  EXPECT_THAT(refusal(with_journal("{}", {0660, 0, 990})), HasSubstr("is writable by others"));
  FakeHost open_folder = with_journal("{}");
  open_folder.state.nodes[Journal::kFolder].ownership = {01777, 0, 0};
  EXPECT_THAT(refusal(open_folder), HasSubstr("/var/lib/ztcp"));
  FakeHost linked = with_journal("{}");
  linked.state.nodes[Journal::kPath] = {FileKind::kLink, {0777, 0, 0}, "/tmp/journal.json"};
  EXPECT_THAT(refusal(linked), HasSubstr("is a symbolic link"));
}

TEST(Journal, RefusesAJournalThatIsNotAFile) {
  for (const FileKind kind : {FileKind::kFolder, FileKind::kPipe, FileKind::kSocket}) {
    FakeHost host = with_journal("{}");
    host.state.nodes[Journal::kPath] = {kind, {0600, 0, 0}, ""};
    EXPECT_THAT(refusal(host), HasSubstr("is not a file"));
    EXPECT_THAT(refusal(host), Not(HasSubstr("sudo"))) << "root has run it";
  }
}

}  // namespace
}  // namespace ztcp::setup
