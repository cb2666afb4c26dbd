// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/process.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "plugin/guard.h"

namespace ztcp::plugin {
namespace {

constexpr int kForkedChild = 1;
constexpr int kOwner = 2;
constexpr int kGuardRefused = 4;
constexpr int kBodyRan = 8;

// Runs in the child: what the three doors say there, as an exit status.
int answers() {
  int status = 0;
  if (is_forked_child()) status |= kForkedChild;
  if (owns_process()) status |= kOwner;
  bool ran = false;
  const ncclResult_t result = guard("test", [&]() -> Told<void> {
    ran = true;
    return {};
  });
  if (result == ncclSystemError) status |= kGuardRefused;
  if (ran) status |= kBodyRan;
  return status;
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(Process, TheClaimantOwns) {
  claim_process();
  EXPECT_TRUE(owns_process());
  EXPECT_FALSE(is_forked_child());
}

TEST(Process, AForkedChildTouchesNothing) {
  claim_process();
  const pid_t child = fork();
  if (child == 0) _exit(answers());
  EXPECT_EQ(status_of(child), kForkedChild | kGuardRefused);
}

TEST(Process, AChildThatClaimsDoesNotOwn) {
  claim_process();
  const pid_t child = fork();
  if (child == 0) {
    claim_process();
    _exit(answers());
  }
  EXPECT_EQ(status_of(child), kForkedChild | kGuardRefused);
}

TEST(Process, ARawCloneIsSeenToo) {
  claim_process();
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(answers());
  EXPECT_EQ(status_of(static_cast<pid_t>(child)), kForkedChild | kGuardRefused);
}

}  // namespace
}  // namespace ztcp::plugin
