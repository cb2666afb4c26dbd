// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/mount.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::FakeHost;
using test::set_up;
using test::undo;
using testing::HasSubstr;

TEST(Mount, AnotherMountAtTheFolderStays) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  ASSERT_EQ(host.state.mounts.size(), 2U);
  auto& [folder, mounted] = *host.state.mounts.begin();
  mounted = "hugetlbfs pagesize=1024M";
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete()) << all_of(outcome.faults);
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("which is not set-up's; not changed"));
  EXPECT_EQ(host.state.mounts.size(), 1U);
}

}  // namespace
}  // namespace ztcp::setup
