// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The plans of a dry run and of a run, from the same command line.
#include "tools/ztcp_setup/run/commands.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/tree_plan.h"

namespace ztcp::setup {
namespace {

using testing::Contains;
using testing::ResultOf;

// The journal, and the walk of paths as root, use absolute paths.
TEST(PlanHere, ARelativeConfigPathBecomesAbsolute) {
  test::FakeHost host(test::tree_text("server-8gpu-9nic"));
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
