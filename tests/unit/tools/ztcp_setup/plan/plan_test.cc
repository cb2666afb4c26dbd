// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Decisions about machines that are stored as trees: NICs, host class, config.
#include "tools/ztcp_setup/plan/plan.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using test::only_fault;
using test::plan_of;
using test::set_up;
using test::tree_text;
using test::without_iommu;
using test::write_config;
using testing::HasSubstr;

TEST(Plan, TheFabricIsAConfigThatLoads) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.fabric);
  const auto loaded = config::parse(to_toml(*plan.fabric), plan.fabric->path);
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  EXPECT_EQ(*loaded.fabric, *plan.fabric);
  EXPECT_EQ(loaded.fabric->host.machine_id, "11111111111111111111111111111111");
  EXPECT_EQ(loaded.fabric->nics[3].kernel_driver, "bnxt_en");
}

// --- Requests by name ----------------------------------------------------------------------------

TEST(Plan, AConfigThatThePluginWouldRefuseIsAFault) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = without_iommu();
  request.per_gpu_mib = 32;
  EXPECT_THAT(only_fault(plan_of(host, request)).problem.what,
              HasSubstr("per_process_mib = 32 is outside 64..65536"));
}

// --- Values from the config ----------------------------------------------------------------------

TEST(Plan, SettingsOfTheOperatorSurvive) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const Plan first = plan_of(host);
  ASSERT_TRUE(set_up(host, first.resources).complete());
  config::Fabric edited = *first.fabric;
  edited.name = "blue";
  edited.tcp.pacing = false;
  write_config(host, edited);
  EXPECT_EQ(*plan_of(host).fabric, edited);
}

}  // namespace
}  // namespace ztcp::setup
