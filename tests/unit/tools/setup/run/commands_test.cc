// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a dry run and a run plan for, from the same words of the command line.
#include "tools/ztcp_setup/run/commands.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tree.h"
#include "tests/unit/tools/setup/tree_host.h"

namespace ztcp::setup {
namespace {

using test::TreeHost;
using testing::Contains;
using testing::ResultOf;

// The journal and the paths that are walked for root name it so, whatever the folder is.
TEST(PlanHere, AConfigInThisFolderIsNamedFromTheTop) {
  const ztcp::test::Tree tree(
      ztcp::test::Tree::read(std::string(ZTCP_TREES) + "/server-8gpu-9nic.tree"));
  TreeHost host(tree);
  PlanRequest request;
  request.config_path = "./no-such.conf";
  const auto plan = plan_here(host, request);
  ASSERT_TRUE(plan && plan->fabric);
  const std::string path = (std::filesystem::current_path() / "no-such.conf").string();
  EXPECT_EQ(plan->fabric->path, path);
  EXPECT_THAT(plan->resources, Contains(ResultOf(key_of, "file " + path)));
}

}  // namespace
}  // namespace ztcp::setup
