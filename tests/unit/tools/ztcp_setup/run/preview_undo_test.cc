// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::FakeHost;
using test::kConfig;
using test::set_up;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

UndoPreview preview_of(FakeHost& host) {
  const auto journal = Journal::open(host);
  EXPECT_TRUE(journal);
  return preview_undo(host, *journal);
}

TEST(PreviewUndo, ShowsTheStepsOfUndoInTheirOrder) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const auto changes = host.changes;
  const UndoPreview preview = preview_of(host);
  EXPECT_EQ(host.changes, changes) << "looking changes nothing";
  EXPECT_THAT(preview.faults, IsEmpty());
  std::vector<std::string> announced;
  for (const auto& step : preview.steps) {
    announced.push_back(step.why);
    EXPECT_NE(step.then, "as before set-up") << step.why;
  }
  std::vector<std::string> done;
  for (const Step& step : test::undo(host).steps) done.push_back(step.why);
  EXPECT_THAT(announced, ElementsAreArray(done));
  EXPECT_EQ(exit_code(preview), kExitGood);
  EXPECT_THAT(to_text(preview), HasSubstr("nothing was changed"));
}

TEST(PreviewUndo, NamesTheFileOfASavedEdit) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.add_file(kConfig, "schema = 1\n# mine\n");
  EXPECT_THAT(all_of(preview_of(host).notes), HasSubstr("ztcp.conf.edited"));
}

TEST(PreviewUndo, ANicInUseIsAFault) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  for (const auto& [path, node] : host.state.nodes)
    if (path.starts_with("/dev/vfio/") && path != "/dev/vfio/vfio")
      host.holders[path] = {4711, "python3"};
  const UndoPreview preview = preview_of(host);
  EXPECT_THAT(all_of(preview.faults), HasSubstr("4711"));
  EXPECT_EQ(exit_code(preview), kExitFaults);
  EXPECT_THAT(to_json(preview), HasSubstr("undo would be refused"));
}

TEST(PreviewUndo, ABareMachineHasNothingToUndo) {
  FakeHost host = bare_machine();
  EXPECT_THAT(to_text(preview_of(host)), HasSubstr("nothing to undo"));
}

}  // namespace
}  // namespace ztcp::setup
