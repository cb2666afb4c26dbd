// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ztcp_setup/report/outcome.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;

TEST(BootUnit, StartsTheProgramThatWroteIt) {
  EXPECT_THAT(unit_text("/opt/ztcp/sbin/ztcp_setup"),
              HasSubstr("\nExecStart=/opt/ztcp/sbin/ztcp_setup --boot\n"));
}

}  // namespace
}  // namespace ztcp::setup
