// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Resources for accounts that run jobs.
#include "tools/ztcp_setup/plan/resources_for.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/tree_plan.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using test::plan_of;
using test::tree_text;
using testing::Contains;
using testing::HasSubstr;

TEST(ResourcesFor, AUserAndAGroupGetTheRightsThatJobsNeed) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  host.add_file("/usr/lib/systemd/system/docker.service", "[Service]\n");
  PlanRequest request;
  request.user = "alice";
  request.group = "ztcp";
  const Plan plan = plan_of(host, request);
  EXPECT_EQ(plan.fabric->host.user, "alice");
  std::size_t groups = 0;
  std::vector<std::string> files;
  for (const Resource& resource : plan.resources) {
    if (const auto* access = std::get_if<resource::Access>(&resource.what)) {
      ++groups;
      EXPECT_EQ(access->user, "alice");
      EXPECT_EQ(access->group, "ztcp");
      EXPECT_EQ(access->mode, 0660U);
    } else if (const auto* folder = std::get_if<resource::Folder>(&resource.what)) {
      EXPECT_EQ(folder->mode, 02770U);
      EXPECT_EQ(folder->group, "ztcp");
    } else if (const auto* file = std::get_if<resource::File>(&resource.what)) {
      files.push_back(file->path);
      if (file->path == "/etc/security/limits.d/ztcp.conf") {
        EXPECT_THAT(file->text, HasSubstr("\nalice - memlock unlimited\n@ztcp - memlock"));
      }
    }
  }
  EXPECT_EQ(groups, 8U);
  EXPECT_THAT(files, Contains("/etc/systemd/system/docker.service.d/50-ztcp.conf"));
  // An account that was allowed once stays allowed.
  test::write_config(host, *plan.fabric);
  EXPECT_EQ(plan_of(host).fabric->host.group, "ztcp");
}

TEST(ResourcesFor, AGroupNameInvalidInLimitsIsAFault) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  host.groups["domain users"] = 513;
  PlanRequest request;
  request.group = "domain users";
  EXPECT_THAT(test::only_fault(plan_of(host, request)).problem.what, HasSubstr("has a blank"));
}

}  // namespace
}  // namespace ztcp::setup
