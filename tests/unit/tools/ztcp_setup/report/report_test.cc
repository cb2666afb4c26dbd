// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/support/tree.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"

namespace ztcp::setup {
namespace {

using test::dry_run_of;
using test::FakeHost;
using test::plan_of;
using test::tree_text;
using test::with_ustack;
using testing::HasSubstr;
using testing::Not;

TEST(Report, TextListsGpusNicsAndReasons) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const DryRun run = dry_run_of(host);
  const std::string text = to_text(run.plan, run.changes);
  EXPECT_THAT(text, HasSubstr("ztcp0   0000:19:00.0  NVIDIA H800"));
  EXPECT_THAT(text, HasSubstr("Hugepages: 50 GiB = 8 GPUs x 5 GiB + 10 GiB"));
  EXPECT_THAT(text, HasSubstr("0000:1b:00.0 (ztcp0): bnxt_en -> vfio-pci\n"));
  EXPECT_THAT(text, HasSubstr("nothing was changed"));
  EXPECT_THAT(text, HasSubstr("        + GRUB_CMDLINE_LINUX_DEFAULT=")) << "what a file will hold";
  EXPECT_THAT(text, Not(HasSubstr("        + #"))) << "but for comments";
}

TEST(Report, WithoutAPairingTextListsAllNics) {
  FakeHost host(tree_text("too-few-nics"));
  const Plan plan = plan_of(host, with_ustack());
  EXPECT_EQ(exit_code(plan), kExitUnusable);
  const std::string text = to_text(plan, {});
  EXPECT_THAT(text, HasSubstr("not for ztcp: carries the default route"));
  EXPECT_THAT(text, HasSubstr("FAULT: this machine: 4 GPUs need 4 NICs"));
}

// Then the NIC with the machine's own traffic is unknown, so none is taken.
TEST(Report, WithoutTheNetworksStateThereIsNoPlan) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  host.network_fault = {"rtnetlink", "Operation not permitted", "run it as root"};
  const DryRun run = dry_run_of(host);
  EXPECT_FALSE(run.plan.fabric);
  EXPECT_THAT(run.plan.resources, testing::IsEmpty());
  EXPECT_THAT(run.changes, testing::IsEmpty());
  EXPECT_EQ(test::only_fault(run.plan).problem.where, "rtnetlink");
  EXPECT_EQ(exit_code(run.plan), kExitUnusable);
  const std::string told =
      "  FAULT: rtnetlink: Operation not permitted\n    mend: run it as root\n";
  EXPECT_EQ(to_text(run.plan, {}), told);
  EXPECT_EQ(faults_text(run.plan, false), told);
  EXPECT_THAT(to_json(run.plan, {}, "set-up"), HasSubstr("\"exit_code\": 3"));
}

TEST(Report, ExitCodeIsTheWorstSeverity) {
  CheckReport report;
  EXPECT_EQ(exit_code(report), kExitGood);
  report.checks.push_back({"a", config::Severity::kGood, {"w", "x", ""}});
  EXPECT_EQ(exit_code(report), kExitGood);
  report.checks.push_back({"b", config::Severity::kWarning, {"w", "x", "y"}});
  EXPECT_EQ(exit_code(report), kExitWarnings);
  report.checks.push_back({"c", config::Severity::kFault, {"w", "x", "y"}});
  EXPECT_EQ(exit_code(report), kExitFaults);
  EXPECT_THAT(to_text(report), HasSubstr("3 checks, 1 warning, 1 fault"));
  EXPECT_THAT(to_json(report), HasSubstr("\"severity\": \"fault\""));
  report.load_problems.push_back({"w", "x", "y"});
  EXPECT_EQ(exit_code(report), kExitUnusable);
}

}  // namespace
}  // namespace ztcp::setup
