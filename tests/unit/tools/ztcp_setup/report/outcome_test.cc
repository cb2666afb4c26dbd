// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/ztcp_setup/plan/boot_unit.h"

namespace ztcp::setup {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

Outcome changed() {
  Outcome outcome;
  outcome.steps = {{"pages", StepResult::kHeld}, {"0000:3b:00.0", StepResult::kChanged}};
  return outcome;
}

TEST(Outcome, SetupSuccessfullyIsTheLastLine) {
  EXPECT_THAT(to_text(RunKind::kSetUp, changed()), EndsWith("\nsetup successfully\n"));
  EXPECT_EQ(exit_code(changed()), kExitGood);
  EXPECT_EQ(to_text(RunKind::kSetUp, {}), "setup successfully\n");
  EXPECT_THAT(to_text(RunKind::kUndo, {}), HasSubstr("nothing to undo"));
}

TEST(Outcome, UndoMentionsItsNotes) {
  Outcome outcome = changed();
  EXPECT_EQ(last_line(RunKind::kUndo, outcome),
            "undo successfully: this machine is as it was before set-up");
  outcome.notes = {{"eth1", "ring rx was 4096 and is 256 now: Invalid argument", ""}};
  EXPECT_THAT(last_line(RunKind::kUndo, outcome), EndsWith(", except for the notes above"));
  EXPECT_EQ(exit_code(outcome), kExitGood);
}

TEST(Outcome, AFaultIsNoSuccessAndNamesTheNextCommand) {
  Outcome outcome = changed();
  outcome.faults = {{"/sys/x", "gave 12 of 20", "reboot"}};
  const std::string text = to_text(RunKind::kSetUp, outcome);
  EXPECT_THAT(text, HasSubstr("FAULT: /sys/x: gave 12 of 20\n    mend: reboot\n"));
  EXPECT_THAT(text, HasSubstr("sudo ztcp_setup --undo"));
  EXPECT_THAT(text, testing::Not(HasSubstr("successfully")));
  EXPECT_EQ(exit_code(outcome), kExitFaults);
}

TEST(Outcome, OutputOfProgramsMayBeInvalidUtf8) {
  Outcome outcome;
  outcome.faults = {{"update-grub", "ended with 1: \xc3", ""}};
  EXPECT_THAT(to_json(RunKind::kSetUp, outcome), HasSubstr("ended with 1: "));
}

TEST(Outcome, AFailureBeforeAnyChangeSaysSo) {
  Outcome outcome;
  outcome.faults = {{"0000:ff:00.0", "there is no such PCI device", ""}};
  EXPECT_THAT(to_text(RunKind::kSetUp, outcome), EndsWith("setup failed; nothing was changed\n"));
}

TEST(Outcome, AStopNamesTheNextCommands) {
  Outcome outcome = changed();
  outcome.stopped = true;
  EXPECT_THAT(to_text(RunKind::kSetUp, outcome), HasSubstr("`sudo ztcp_setup` continues"));
  EXPECT_EQ(exit_code(outcome), kExitFaults);
}

TEST(Outcome, JsonHasStepsAndProblems) {
  Outcome outcome = changed();
  outcome.steps.push_back({"0000:5e:00.0", StepResult::kReverted});
  outcome.notes = {{"eth1", "has a lease back", "dhclient eth1"}};
  const auto json = nlohmann::json::parse(to_json(RunKind::kUndo, outcome));
  EXPECT_EQ(json["mode"], "undo");
  EXPECT_EQ(json["exit_code"], 0);
  EXPECT_EQ(json["steps"][0]["result"], "unchanged");
  EXPECT_EQ(json["steps"][1]["result"], "changed");
  EXPECT_EQ(json["steps"][2]["result"], "reverted");
  EXPECT_EQ(json["problems"][0]["severity"], "warning");
}

}  // namespace
}  // namespace ztcp::setup
