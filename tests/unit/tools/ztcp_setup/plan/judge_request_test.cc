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

using test::FakeHost;
using test::only_fault;
using test::plan_of;
using test::tree_text;
using test::without_iommu;
using test::write_config;
using testing::HasSubstr;

TEST(JudgeRequest, AFolderAsConfigIsAFault) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  PlanRequest request;
  request.config_path = "/srv/ztcp/";
  const auto run = dry_run_here(host, request);
  ASSERT_TRUE(run) << to_string(run.error());
  const config::Check fault = only_fault(run->plan);
  EXPECT_EQ(fault.problem.where, "/srv/ztcp/");
  EXPECT_EQ(fault.problem.mend, "ztcp_setup --config /srv/ztcp/ztcp.conf");
}

// All faults at once: none is hidden behind another.
TEST(JudgeRequest, EveryFaultOfTheRequestIsReported) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request;
  request.selection.keep = {"eth99"};
  request.selection.take = {"0000:ff:00.0"};
  request.user = "nobody-here";
  request.group = "no-such";
  request.page_kib = 1048576;
  request.per_gpu_mib = 200 * 1024;
  request.speed_mbps = 25000;
  const Plan plan = plan_of(host, request);
  std::vector<std::string> where;
  for (const config::Check& note : plan.notes) {
    EXPECT_EQ(note.severity, config::Severity::kFault) << note.problem.what;
    EXPECT_FALSE(note.problem.mend.empty());
    where.push_back(note.problem.where);
  }
  EXPECT_THAT(where, testing::ElementsAre("--keep eth99", "--take 0000:ff:00.0",
                                          "--user nobody-here", "--group no-such", "IOMMU",
                                          "hugepages", "NUMA node 0", "NUMA node 1"));
}

TEST(JudgeRequest, AnOddNameIsQuotedInItsMend) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = test::without_iommu();
  request.group = "domain users";
  EXPECT_EQ(only_fault(plan_of(host, request)).problem.mend,
            "sudo groupadd --system 'domain users'");
}

TEST(JudgeRequest, AFabricOfSoftwareNicsIsNotChanged) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  write_config(host, *plan_local({}));
  EXPECT_THAT(only_fault(plan_of(host)).problem.what, HasSubstr("is a fabric of software NICs"));
}

}  // namespace
}  // namespace ztcp::setup
