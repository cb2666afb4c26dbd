// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/command_line_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kCommandLine;
using testing::HasSubstr;

Resources arguments_wanted() {
  return {{"command line",
           resource::CommandLineFile{kCommandLine, {"iommu=pt", "hugepagesz=1G", "hugepages=20"}}}};
}

FakeHost machine_with(const std::string& text) {
  FakeHost host = bare_machine();
  host.add_folder("/etc/kernel");
  host.add_file(kCommandLine, text, {0640, 0, 0});
  return host;
}

TEST(CommandLineFile, OurArgumentsAreAppendedAndRemoved) {
  for (const char* text : {"root=ZFS=rpool boot=zfs\n", "root=/dev/sda1 hugepages=512",
                           "# mine\nro\n", "ro iommu=pt\n", "ro \n", ""}) {
    FakeHost host = machine_with(text);
    const FakeHost::State bare = host.state;
    ASSERT_TRUE(test::set_up(host, arguments_wanted()).complete()) << text;
    EXPECT_THAT(*host.read_file(kCommandLine), HasSubstr("hugepagesz=1G hugepages=20")) << text;
    EXPECT_EQ(host.facts(kCommandLine).ownership.mode, 0640U);
    const auto changes = host.changes;
    ASSERT_TRUE(test::set_up(host, arguments_wanted()).complete());
    EXPECT_EQ(host.changes, changes) << "the second run changes nothing";
    ASSERT_TRUE(test::undo(host).complete());
    expect_same(host.state, bare);
  }
}

TEST(CommandLineFile, TheOperatorsEditsStay) {
  FakeHost host = machine_with("root=/dev/sda1 iommu=pt\n");
  ASSERT_TRUE(test::set_up(host, arguments_wanted()).complete());
  std::string text = *host.read_file(kCommandLine);
  EXPECT_EQ(text, "root=/dev/sda1 iommu=pt hugepagesz=1G hugepages=20\n");
  host.add_file(kCommandLine,
                "quiet root=/dev/sda1 iommu=pt hugepagesz=1G hugepages=20 nomodeset\n");
  ASSERT_TRUE(test::undo(host).complete());
  EXPECT_EQ(*host.read_file(kCommandLine), "quiet root=/dev/sda1 iommu=pt nomodeset\n");
}

TEST(CommandLineFile, AMissingFileOrALinkIsReported) {
  FakeHost host = machine_with("ro\n");
  ASSERT_TRUE(test::set_up(host, arguments_wanted()).complete());
  host.state.nodes.erase(kCommandLine);
  const Outcome undone = test::undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes), HasSubstr("no longer exists"));
  EXPECT_THAT(all_of(test::set_up(host, arguments_wanted()).faults), HasSubstr("does not exist"));
  host.state.nodes[kCommandLine] = {FileKind::kLink, {0777, 0, 0}, "/etc/hostname"};
  EXPECT_THAT(all_of(test::set_up(host, arguments_wanted()).faults),
              HasSubstr("is a symbolic link"));
}

TEST(CommandLineFile, UndoWorksAfterAnyInterruption) {
  const FakeHost before = machine_with("root=/dev/sda1 hugepages=512\n");
  for (const auto when :
       {FakeHost::When::kBefore, FakeHost::When::kHalfWay, FakeHost::When::kAfter})
    for (std::uint64_t n = 1;; ++n) {
      FakeHost host = before;
      host.kill_at(n, when);
      bool killed = false;
      try {
        test::set_up(host, arguments_wanted());
      } catch (const test::Killed&) {
        killed = true;
      }
      host.kill_at(0, when);
      if (!killed) break;
      ASSERT_TRUE(test::undo(host).complete()) << n;
      expect_same(host.state, before.state);
    }
}

}  // namespace
}  // namespace ztcp::setup
