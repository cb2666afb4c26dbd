// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/without_secrets.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kKey = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";

TEST(WithoutSecrets, TheKeyIsHiddenInAnySyntax) {
  for (const std::string before :
       {"cluster_key = \"", "messages.cluster_key='", "messages = { cluster_key = \"",
        "cluster_key = \"\"\"\n", "\"cluster_key\" = \""}) {
    const std::string shown = without_secrets("schema = 1\n" + before + kKey + "\"\n[tcp]\n");
    EXPECT_EQ(shown, "schema = 1\n" + before + "(not shown)\"\n[tcp]\n");
  }
  EXPECT_EQ(without_secrets(kKey), "(not shown)");
}

TEST(WithoutSecrets, TextWithoutAKeyIsUnchanged) {
  for (const char* text : {"", "# cluster_key: 64 digits\ncluster_key = \"\"\nx = 1\n", "abc",
                           "machine_id = \"11111111111111111111111111111111\"\n"})
    EXPECT_EQ(without_secrets(text), text);
}

// The output of --dry-run gets shared.
TEST(WithoutSecrets, NoReportOfADryRunShowsTheKey) {
  test::FakeHost host(test::tree_text("vlan"));
  config::Fabric fabric = *test::plan_of(host, test::for_a_group()).fabric;
  fabric.messages.cluster_key = kKey;
  fabric.nics.front().kernel_driver = "another";
  test::write_config(host, fabric);
  const DryRun run = test::dry_run_of(host, test::for_a_group());
  const auto config = std::ranges::find_if(run.changes, [](const Preview& change) {
    return change.want.find(kKey) != std::string::npos;
  });
  ASSERT_FALSE(run.plan.has_faults()) << faults_text(run.plan, false);
  ASSERT_NE(config, run.changes.end()) << "the key of an earlier config stays";
  EXPECT_THAT(to_json(run.plan, run.changes), Not(HasSubstr(kKey)));
  EXPECT_THAT(to_text(run.plan, run.changes), Not(HasSubstr(kKey)));
  std::vector<Preview> changed{*config};
  changed.front().have = "schema = 1\ncluster_key = \"\"\n";
  EXPECT_THAT(to_text(run.plan, changed), Not(HasSubstr(kKey)));
  EXPECT_THAT(to_text(run.plan, changed), HasSubstr("(not shown)"));
}

}  // namespace
}  // namespace ztcp::setup
