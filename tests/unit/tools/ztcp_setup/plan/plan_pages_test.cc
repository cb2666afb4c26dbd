// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The number of hugepages for a machine, and other users of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {
namespace {

using test::dry_run_of;
using test::FakeHost;
using test::plan_of;
using test::tree_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string pool(int node, const char* count) {
  return fmt::format("/sys/devices/system/node/node{}/hugepages/hugepages-1048576kB/{}", node,
                     count);
}

TEST(PlanPages, EightGpusNeedFiftyGib) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.fabric);
  EXPECT_EQ(plan.hugepage_mib(), 50U * 1024);
  ASSERT_EQ(plan.pages.size(), 2U);
  EXPECT_EQ(plan.pages[0].want, 25U);  // 4 x 5 GiB and half of the 10, in pages of 1 GiB.
  EXPECT_EQ(plan.pages[1].want, 25U);
  EXPECT_EQ(exit_code(plan), kExitGood);
}

// A process allocates memory for such a NIC on node 0; the whole machine's count would include
// pages of other nodes.
TEST(PlanPages, ANicWithoutANodeGetsPagesOfNode0) {
  std::string text = tree_text("server-8gpu-9nic");
  const auto at = text.find("numa=1", text.find("0000:9b:00.0 id="));
  text.replace(at, 6, "numa=-1");
  FakeHost host(text);
  const Plan plan = plan_of(host);
  std::vector<std::string> wanted;
  for (const Resource& resource : plan.resources)
    if (const auto* value = std::get_if<resource::Value>(&resource.what);
        value != nullptr && value->at_least)
      wanted.push_back(value->value + " > " + value->path);
  EXPECT_THAT(wanted,
              ElementsAre("30 > " + pool(0, "nr_hugepages"), "20 > " + pool(1, "nr_hugepages")));
  EXPECT_EQ(plan.hugepage_mib(), 50U * 1024);
}

// It sets the pages of all nodes, at boot and whenever it is applied.
TEST(PlanPages, ASysctlThatRemovesPagesIsReported) {
  const std::string tree = tree_text("cloud-flat");
  const std::string setting = "file path=etc/sysctl.d/90-db.conf text=# db\\nvm.nr_hugepages = ";
  const auto told = [&](const std::string& count) {
    FakeHost host(tree + setting + count + "\n");
    std::vector<std::string> warnings;
    for (const config::Check& note : plan_of(host, test::without_iommu()).notes)
      if (note.problem.where == "/etc/sysctl.d/90-db.conf") warnings.push_back(note.problem.what);
    return warnings;
  };
  EXPECT_THAT(told("512"),
              ElementsAre(HasSubstr("sets vm.nr_hugepages to 512: each time it is applied, only "
                                    "512 pages of 2 MiB stay; ztcp needs 25600")));
  EXPECT_THAT(told("30000"), IsEmpty());
  EXPECT_THAT(told("512\nfile path=etc/sysctl.conf text=vm.nr_hugepages=30000"), IsEmpty())
      << "the last holds";
  FakeHost large(tree_text("server-8gpu-9nic") + setting + "512\n");
  for (const config::Check& note : plan_of(large).notes)
    EXPECT_NE(note.problem.where, "/etc/sysctl.d/90-db.conf") << "of pages of another size";
}

TEST(PlanPages, PagesUsedByOtherProgramsAreReported) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const auto reserve = [&](int total, int free) {
    host.state.values[pool(1, "nr_hugepages")] = std::to_string(total);
    host.state.values[pool(1, "free_hugepages")] = std::to_string(free);
  };
  reserve(12, 7);
  EXPECT_THAT(plan_of(host).notes, IsEmpty()) << "20 of 25 stay free for 4 x 5 GiB";
  reserve(12, 0);
  const Plan plan = plan_of(host);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.notes[0].severity, config::Severity::kWarning);
  EXPECT_EQ(plan.notes[0].problem.where, "NUMA node 1");
  EXPECT_THAT(plan.notes[0].problem.what,
              HasSubstr("other programs use 12 of 1 GiB pages: of 25 pages 13 will be free, and "
                        "jobs may take 20"));
  EXPECT_THAT(plan.notes[0].problem.mend,
              HasSubstr("echo 37 | sudo tee /sys/devices/system/node/node1/hugepages/"));
  reserve(37, 25);
  EXPECT_THAT(plan_of(host).notes, IsEmpty());

  // After set-up, pages in use may be a job's, and a second run changes nothing.
  reserve(12, 0);
  ASSERT_TRUE(test::set_up(host, plan.resources).complete());
  for (const int node : {0, 1}) host.state.values[pool(node, "free_hugepages")] = "1";
  const DryRun again = dry_run_of(host);
  EXPECT_THAT(again.plan.notes, IsEmpty());
  EXPECT_THAT(again.changes, IsEmpty());
}

}  // namespace
}  // namespace ztcp::setup
