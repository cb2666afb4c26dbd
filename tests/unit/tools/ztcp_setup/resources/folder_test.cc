// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/folder.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::set_up;
using test::undo;
using testing::HasSubstr;

TEST(Folder, AFolderWithOtherFilesStaysWithANote) {
  FakeHost host = bare_machine();
  const Resources resources{{"locks", resource::Folder{"/run/ztcp", 02770, "", "ztcp"}}};
  host.add_folder("/run");
  ASSERT_TRUE(set_up(host, resources).complete());
  host.add_file("/run/ztcp/notes", "");
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("/run/ztcp: contains notes, not removed"));
}

TEST(Folder, LeftoverLocksAreRemovedWithTheirFolder) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  host.add_file("/usr/local/tfabric/tools/run/0000:3b:00.0.lock", "", {0666, 1000, 990});
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

// run_dir = "/tmp" in a config would have locked out its users, and exposed its content.
TEST(Folder, AFolderWithAnotherUseIsNotTaken) {
  FakeHost host = bare_machine();
  host.add_folder("/tmp", {01777, 0, 0});
  host.add_folder("/tmp/systemd-private");
  const Resources resources{{"locks", resource::Folder{"/tmp", 02770, "", "ztcp"}}};
  EXPECT_THAT(all_of(set_up(host, resources).faults),
              HasSubstr("/tmp: is 1777 root:root and holds systemd-private: not made 2770 "
                        "root:ztcp"));
  EXPECT_EQ(host.changes, 0U);
  host.state.nodes.erase("/tmp/systemd-private");
  // Like /run/lock: its locks are not ztcp's.
  host.add_file("/tmp/group-7.lock", "");
  EXPECT_THAT(all_of(set_up(host, resources).faults),
              HasSubstr("/tmp: is 1777 root:root and is writable by everybody"));
  EXPECT_EQ(host.changes, 0U);
  host.state.nodes.at("/tmp").ownership = {0755, 0, 0};
  EXPECT_TRUE(set_up(host, resources).complete()) << "locks alone may be ztcp's own";
}

TEST(Folder, AFolderWithAFaultStaysForTheNextTry) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.boot();
  host.groups["ztcp"] = 991;
  host.errors["chown /usr/local/tfabric/tools/run"] = EROFS;
  auto journal = Journal::open(host);
  const Outcome again = apply_after_boot(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("/usr/local/tfabric/tools/run: injected"));
  EXPECT_EQ(host.facts("/usr/local/tfabric/tools/run").kind, FileKind::kFolder);
  EXPECT_EQ(host.state.nodes.at("/dev/vfio/12").ownership.group, 991U);
}

}  // namespace
}  // namespace ztcp::setup
