// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whole runs on a machine in memory, from the check of permissions to their last line.
#include "tools/ztcp_setup/run/run.h"

#include <array>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::all_resources;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kConfig;
using test::Killed;
using test::set_up;
using testing::HasSubstr;

class RunAsRoot : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "what changes a machine is refused to others than root";
  }
  ~RunAsRoot() override { ::unlink(options_.lock_path.c_str()); }

  RunOptions options_{
      .json = true,
      .command = "ztcp_setup",
      .config_path = kConfig,
      .lock_path = fmt::format("{}ztcp-run-test-{}.lock", testing::TempDir(), ::getpid())};
};

TEST_F(RunAsRoot, ThePlannerGetsThePrecedingReverts) {
  FakeHost host = bare_machine();
  host.kill_at(60, FakeHost::When::kBefore);
  EXPECT_THROW(set_up(host), Killed);
  host.kill_at(0, FakeHost::When::kBefore);
  bool changed = false;
  const auto refuse_plan = [&](const Outcome& reverted) -> Result<Planned, int> {
    changed = reverted.changed();
    return tl::unexpected<int>(kExitFaults);
  };
  EXPECT_EQ(run_set_up(host, refuse_plan, options_), kExitFaults);
  EXPECT_TRUE(changed);
  EXPECT_EQ(run_set_up(host, refuse_plan, options_), kExitFaults);
  EXPECT_FALSE(changed) << "the second time there is nothing left to revert but pages";
}

TEST_F(RunAsRoot, AddWaitsForARunStartedByUdev) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  std::array<int, 2> taken{};
  ASSERT_EQ(::pipe(taken.data()), 0);
  const pid_t udevs = ::fork();
  if (udevs == 0) {
    const auto lock = RunLock::take(std::chrono::milliseconds{0}, options_.lock_path);
    if (lock && ::write(taken[1], "", 1) == 1) ::usleep(300'000);
    ::_exit(0);
  }
  ::close(taken[1]);
  char byte = 0;
  ASSERT_EQ(::read(taken[0], &byte, 1), 1);
  ::close(taken[0]);
  const auto plan = [](const Outcome&) -> Result<Planned, int> {
    return Planned{all_resources(), Scope::kMore, {}, ""};
  };
  EXPECT_EQ(run_add(host, plan, options_), kExitGood);
  ::waitpid(udevs, nullptr, 0);
}

TEST_F(RunAsRoot, UndoDoesNotRequireATrustedConfig) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  FakeHost::State wanted = bare;
  host.add_folder("/home", {0755, 0, 0});
  host.add_folder("/home/alice", {0755, 1000, 1000});
  host.add_file("/home/alice/ztcp.conf", "", {0644, 1000, 1000});
  wanted.nodes = bare.nodes;
  for (const char* path : {"/home", "/home/alice", "/home/alice/ztcp.conf"})
    wanted.nodes[path] = host.state.nodes.at(path);
  options_.config_path = "/home/alice/ztcp.conf";
  EXPECT_EQ(run_undo(host, options_), kExitGood);
  expect_same(host.state, wanted);

  const auto never = [](const Outcome&) -> Result<Planned, int> {
    ADD_FAILURE() << "planned with a config that is not root's";
    return tl::unexpected<int>(kExitFaults);
  };
  EXPECT_EQ(run_set_up(host, never, options_), kExitUnusable);
}

}  // namespace
}  // namespace ztcp::setup
