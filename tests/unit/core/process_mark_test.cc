// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/process_mark.h"

#include <csignal>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

constexpr int kForkedChild = 1;
constexpr int kOwner = 2;

int answers() { return (in_forked_child() ? kForkedChild : 0) | (owns_process() ? kOwner : 0); }

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(ProcessMark, NoProcessIsTheOwnerBeforeTheMark) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // Runs in new, unmarked processes.
  EXPECT_EXIT(_exit(answers()), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        mark_process();
        _exit(answers());
      },
      testing::ExitedWithCode(kOwner), "");
}

TEST(ProcessMark, AForkedChildOwnsNothing) {
  mark_process();
  EXPECT_EQ(answers(), kOwner);
  const pid_t child = fork();
  if (child == 0) _exit(answers());
  EXPECT_EQ(status_of(child), kForkedChild);
}

TEST(ProcessMark, AForkedChildCannotMarkItself) {
  mark_process();
  const pid_t child = fork();
  if (child == 0) {
    mark_process();
    _exit(answers());
  }
  EXPECT_EQ(status_of(child), kForkedChild);
}

TEST(ProcessMark, ARawCloneIsSeenToo) {
  mark_process();
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(answers());
  EXPECT_EQ(status_of(static_cast<pid_t>(child)), kForkedChild);
}

}  // namespace
}  // namespace ztcp
