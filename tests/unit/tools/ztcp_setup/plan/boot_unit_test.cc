// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/report/outcome.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;

TEST(BootUnit, StartsTheProgramThatWroteTheUnit) {
  EXPECT_THAT(unit_text("/opt/ztcp/sbin/ztcp_setup"),
              HasSubstr("\nExecStart=/opt/ztcp/sbin/ztcp_setup --boot\n"));
}

TEST(BootUnit, APathIsQuotedAsOneWord) {
  EXPECT_THAT(unit_text("/opt/my tools/ztcp_setup"),
              HasSubstr("\nExecStart=\"/opt/my tools/ztcp_setup\" --boot\n"));
  EXPECT_THAT(unit_text("/opt/100%/$x/ztcp_setup"),
              HasSubstr("\nExecStart=/opt/100%%/$$x/ztcp_setup --boot\n"));
  EXPECT_THAT(unit_text("/opt/a\"b\\c/ztcp_setup"),
              HasSubstr("\nExecStart=\"/opt/a\\\"b\\\\c/ztcp_setup\" --boot\n"));
}

TEST(BootUnit, APathWithALineEndGetsNoUnit) {
  test::FakeHost host;
  host.add_folder("/run");
  host.add_folder("/run/systemd");
  host.add_folder("/run/systemd/system");
  host.add_folder("/opt");
  for (const char* path : {"/opt/ztcp_setup", "/opt/x\nExecStartPre=/bin/sh"}) {
    host.add_file(path, "ELF", {0755, 0, 0});
    host.state.nodes["/proc/self/exe"] = {FileKind::kLink, {0777, 0, 0}, path};
    EXPECT_EQ(unit_text_here(host).empty(), path != std::string("/opt/ztcp_setup")) << path;
  }
}

TEST(BootUnit, PagesAreReservedBehindSysctl) {
  EXPECT_THAT(unit_text("/opt/ztcp_setup"), HasSubstr("\nAfter=systemd-sysctl.service\n"));
}

}  // namespace
}  // namespace ztcp::setup
