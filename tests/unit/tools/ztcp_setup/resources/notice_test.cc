// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/notice.h"

#include <algorithm>
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::FakeHost;
using test::kGrub;
using test::set_up;
using test::undo;
using testing::HasSubstr;

Resources drop_in(const std::string& text) {
  return {{"at boot", resource::File{kGrub, text, 0644, ""}},
          {"boot loader", resource::Notice{{"update-grub"}}}};
}

std::ptrdiff_t runs(const FakeHost& host) {
  return std::ranges::count(host.log, std::string("run update-grub"));
}

TEST(Notice, RunsOnlyWhenSomethingBeforeItChanged) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host, drop_in("iommu=pt\n")).complete());
  EXPECT_EQ(runs(host), 1);
  ASSERT_TRUE(set_up(host, drop_in("iommu=pt\n")).complete());
  EXPECT_EQ(runs(host), 1);
  ASSERT_TRUE(set_up(host, drop_in("iommu=on\n")).complete());
  EXPECT_EQ(runs(host), 2);
  EXPECT_EQ(host.state.values.at("grub.cfg"), "iommu=on\n");
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(runs(host), 3);
}

TEST(Notice, ANoticeStaysDueUntilItRan) {
  FakeHost host = bare_machine();
  host.errors["run update-grub"] = EIO;
  EXPECT_FALSE(set_up(host, drop_in("iommu=pt\n")).complete());
  host.errors.clear();
  const Outcome again = set_up(host, drop_in("iommu=pt\n"));
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  EXPECT_EQ(host.state.values.at("grub.cfg"), "iommu=pt\n");
}

TEST(Notice, AMissingProgramIsAFaultBeforeAnyChange) {
  FakeHost host = bare_machine();
  host.programs.erase("update-grub");
  EXPECT_THAT(all_of(set_up(host, drop_in("iommu=pt\n")).faults),
              HasSubstr("update-grub: is not installed"));
  EXPECT_EQ(host.changes, 0U);
}

}  // namespace
}  // namespace ztcp::setup
