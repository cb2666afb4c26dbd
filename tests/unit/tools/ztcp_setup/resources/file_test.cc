// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/file.h"

#include <algorithm>
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::all_resources;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kConfig;
using test::Killed;
using test::kLimits;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(File, AnEditedFileIsKept) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.add_file(kConfig, "schema = 1\n# mine\n");
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("edited"));
  EXPECT_EQ(host.facts(kConfig).kind, FileKind::kAbsent);
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");

  ASSERT_TRUE(set_up(host).complete());
  host.add_file(kConfig, "schema = 1\n# mine, later\n");
  EXPECT_TRUE(undo(host).complete());
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");
  ASSERT_TRUE(host.read_file(std::string(kConfig) + ".edited-2"));
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited-2"), "schema = 1\n# mine, later\n");
}

// The new text has the file's values; the operator's comments would be lost.
TEST(File, AnEditedFileIsKeptWhenAnotherIsWritten) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  Resources resources = all_resources();
  for (Resource& resource : resources)
    if (key_of(resource) == std::string("file ") + kConfig)
      std::get<resource::File>(resource.what).text += "name = \"blue\"\n";
  FakeHost same = host;
  EXPECT_THAT(all_of(set_up(same, resources).notes), IsEmpty()) << "nobody edited it";

  host.add_file(kConfig, "schema = 1\n# mine\n");
  Plan plan;
  plan.fabric.emplace();
  plan.resources = resources;
  const auto changes = host.changes;
  preview_run(host, Mode::kFresh, plan);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_THAT(plan.notes.front().problem.what, HasSubstr("ztcp.conf.edited"));
  EXPECT_EQ(host.changes, changes);

  const Outcome outcome = set_up(host, resources);
  EXPECT_TRUE(outcome.complete()) << all_of(outcome.faults);
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("ztcp.conf.edited"));
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");
  EXPECT_THAT(*host.read_file(kConfig), HasSubstr("blue"));
}

// For a process killed before, in or after any of its operations.
TEST(File, NoInterruptionLosesAnEdit) {
  FakeHost edited = bare_machine();
  ASSERT_TRUE(set_up(edited).complete());
  edited.add_file(kConfig, "schema = 1\n# mine\n");
  const Resources other{{"config", resource::File{kConfig, "schema = 1\n# another\n", 0644, ""}}};
  const auto has_mine = [](const FakeHost& host) {
    return std::ranges::any_of(host.state.nodes, [](const auto& node) {
      return node.first.starts_with(kConfig) && node.second.text == "schema = 1\n# mine\n";
    });
  };
  std::size_t cuts = 0;
  for (const auto when :
       {FakeHost::When::kBefore, FakeHost::When::kHalfWay, FakeHost::When::kAfter})
    for (std::uint64_t n = 1;; ++n) {
      FakeHost host = edited;
      host.kill_at(n, when);
      bool is_cut = false;
      try {
        set_up(host, other, Scope::kMore);
      } catch (const Killed&) {
        is_cut = true;
      }
      host.kill_at(0, when);
      EXPECT_TRUE(has_mine(host)) << n;
      FakeHost again = host;
      EXPECT_TRUE(set_up(again, other, Scope::kMore).complete());
      EXPECT_TRUE(has_mine(again)) << n;
      EXPECT_TRUE(undo(host).complete());
      EXPECT_TRUE(has_mine(host)) << n;
      if (!is_cut) break;
      ++cuts;
    }
  EXPECT_GT(cuts, 10U);
}

TEST(File, UndoKeepsWhatReplacedTheFile) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.state.nodes.at(kConfig) = {FileKind::kLink, {0777, 0, 0}, "/srv/ztcp.conf"};
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("is no longer a file, not changed"));
  EXPECT_EQ(host.facts(kConfig).kind, FileKind::kLink);
}

// A file in its place would destroy it, and undo could not restore it.
TEST(File, OtherThingsAreNotReplacedByAFile) {
  for (const FileKind kind : {FileKind::kFolder, FileKind::kSocket, FileKind::kOther}) {
    FakeHost host = bare_machine();
    host.add_file(kLimits, "");
    host.state.nodes.at(kLimits).kind = kind;
    const FakeHost::State before = host.state;
    EXPECT_THAT(all_of(set_up(host).faults), HasSubstr("ztcp.conf: exists and is not a file"));
    expect_same(host.state, before);
  }
}

TEST(File, AFullDiskIsAFaultWithItsMend) {
  FakeHost host = bare_machine();
  host.errors["create /etc/security/limits.d/.ztcp.conf.ztcp-new"] = ENOSPC;
  EXPECT_THAT(all_of(set_up(host).faults), HasSubstr("mend: df -h /etc/security/limits.d"));
}

TEST(File, TooManyLinksAreAFault) {
  FakeHost host = bare_machine();
  host.state.nodes["/etc/security/limits.d"] = {FileKind::kLink, {0777, 0, 0}, "limits.d"};
  EXPECT_THAT(all_of(set_up(host).faults),
              HasSubstr("is one of too many links on the path; mend: ls -l"));
}

}  // namespace
}  // namespace ztcp::setup
