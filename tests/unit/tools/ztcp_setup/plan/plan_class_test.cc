// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/plan/plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::dry_run_of;
using test::FakeHost;
using test::only_fault;
using test::plan_of;
using test::tree_text;
using test::without_iommu;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

TEST(PlanClass, HostClassFollowsTheIommu) {
  FakeHost server(tree_text("server-8gpu-9nic"));
  EXPECT_EQ(plan_of(server).fabric->host.host_class, config::HostClass::kIommu);
  FakeHost cloud(tree_text("cloud-flat"));
  const DryRun run = dry_run_of(cloud, without_iommu());
  EXPECT_EQ(run.plan.fabric->host.host_class, config::HostClass::kNoIommu);
  EXPECT_THAT(run.changes,
              Contains(Field(&Preview::command,
                             "echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode")));
  EXPECT_THAT(to_text(run.plan, {}), HasSubstr("Host class B: no IOMMU"));
}

TEST(PlanClass, WithoutAnIommuPlanningNeedsConsent) {
  FakeHost host(tree_text("cloud-flat"));
  std::string& cpu = host.state.values["/proc/cpuinfo"];
  const config::Check fault = only_fault(plan_of(host));
  EXPECT_THAT(fault.problem.what, HasSubstr("no IOMMU group for eth5"));
  EXPECT_THAT(fault.problem.what, HasSubstr("the firmware describes none"));
  EXPECT_THAT(fault.problem.mend, HasSubstr("ztcp_setup --no-iommu"));
  cpu = "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t: fpu";
  EXPECT_THAT(only_fault(plan_of(host)).problem.mend, HasSubstr("AMD-Vi"));
  cpu = "processor\t: 0\nflags\t: fpu hypervisor";
  EXPECT_THAT(only_fault(plan_of(host)).problem.what, HasSubstr("virtual machine was given none"));
  host.state.values["/sys/firmware/acpi/tables/DMAR"] = "";
  EXPECT_THAT(only_fault(plan_of(host)).problem.mend, HasSubstr("ztcp_setup --iommu"));
}

TEST(PlanClass, AskingForAnIommuTouchesOnlyTheNextBoot) {
  FakeHost host(tree_text("cloud-flat"));
  host.state.values["/proc/cpuinfo"] = "processor\t: 0\nvendor_id\t: GenuineIntel";
  PlanRequest request;
  request.ask_iommu = true;
  const Plan plan = plan_of(host, request);
  EXPECT_FALSE(plan.has_faults());
  EXPECT_TRUE(plan.awaits_reboot);
  EXPECT_EQ(exit_code(plan), kExitWarnings);
  ASSERT_EQ(plan.resources.size(), 3U);
  EXPECT_THAT(std::get<resource::File>(plan.resources[0].what).text,
              HasSubstr(" intel_iommu=on iommu=pt hugepagesz=2M"));
}

TEST(PlanClass, APresentIommuIsUsed) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_of(host, without_iommu());
  EXPECT_EQ(plan.fabric->host.host_class, config::HostClass::kIommu);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_THAT(plan.notes[0].problem.what, HasSubstr("not needed"));
}

}  // namespace
}  // namespace ztcp::setup
