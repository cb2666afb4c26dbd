// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two runs at the same time, as processes of this machine.
#include "tools/ztcp_setup/run/run_lock.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tree.h"
#include "tools/ztcp_setup/live/live_host.h"

namespace ztcp::setup {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunLocks : public testing::Test {
 protected:
  RunLocks() : host_(LiveHost::Purpose::kChange, tree_.root()) {
    tree_.add_folder("etc");
    ::chmod(tree_.path("etc").c_str(), 0755);
  }

  test::Tree tree_;
  LiveHost host_;
};

TEST_F(RunLocks, ASecondRunNamesTheHolderOfTheLock) {
  const std::string path = tree_.path("etc/lock");
  const pid_t other = ::fork();
  if (other == 0) {
    const auto lock = RunLock::take(std::chrono::milliseconds{0}, path);
    std::ofstream(tree_.path("etc/taken")) << "taken\n";
    for (;;) ::pause();
  }
  while (!fs::exists(tree_.path("etc/taken"))) ::usleep(1000);
  const auto lock = RunLock::take(std::chrono::milliseconds{0}, path);
  ASSERT_FALSE(lock.has_value());
  EXPECT_THAT(lock.error().what, HasSubstr(fmt::format("process {}", other)));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_TRUE(RunLock::take(std::chrono::milliseconds{0}, path).has_value());
}

// A second run waits, since a half-written boot loader menu would be worse.
TEST_F(RunLocks, AProgramThatOutlivesItsRunBlocksASecondRun) {
  const std::string path = tree_.path("etc/lock");
  const std::string folder = tree_.path("etc");
  const pid_t killed = ::fork();
  if (killed == 0) {
    const auto lock = RunLock::take(std::chrono::milliseconds{0}, path);
    // At most ten seconds, should the test end before it.
    const std::string script = fmt::format(
        "touch {0}/begun; for i in $(seq 500); do [ -e {0}/go ] && break; sleep 0.02; done; "
        "echo goes on && touch {0}/whole",
        folder);
    static_cast<void>(host_.run({"sh", "-c", script}, std::chrono::seconds{30}));
    ::_exit(0);
  }
  while (!fs::exists(folder + "/begun")) ::usleep(1000);
  const auto beside = RunLock::take(std::chrono::milliseconds{0}, path);
  ::kill(killed, SIGKILL);
  ::waitpid(killed, nullptr, 0);
  const auto behind = RunLock::take(std::chrono::milliseconds{0}, path);
  tree_.add_file("etc/go", "");
  ASSERT_FALSE(beside.has_value());
  EXPECT_THAT(beside.error().what, HasSubstr(fmt::format("process {}", killed)));
  ASSERT_FALSE(behind.has_value());
  EXPECT_THAT(behind.error().what,
              HasSubstr("a program that an earlier ztcp_setup started is still running"));
  EXPECT_THAT(behind.error().what, HasSubstr("(sh)"));
  EXPECT_TRUE(RunLock::take(std::chrono::seconds{20}, path).has_value());
  EXPECT_TRUE(fs::exists(folder + "/whole"));
}

}  // namespace
}  // namespace ztcp::setup
