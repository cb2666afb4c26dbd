// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/process_limits.h"

#include <functional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

// In a forked child with `kind` limited to `value`.
bool advice_has(int kind, rlim_t value, const std::string& wanted) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{value, value};
    if (setrlimit(static_cast<__rlimit_resource_t>(kind), &limit) != 0) _exit(2);
    const std::string advice = advice_on_limits();
    _exit((wanted.empty() ? advice.empty() : advice.find(wanted) != std::string::npos) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ProcessLimits, TooFewDescriptorsAreReported) {
  EXPECT_TRUE(advice_has(RLIMIT_NOFILE, 12, "raise ulimit -n: this process may open 12 files"));
  EXPECT_TRUE(advice_has(RLIMIT_NOFILE, 3, "raise ulimit -n"));
  EXPECT_TRUE(advice_has(RLIMIT_NOFILE, 1024, ""));
}

TEST(ProcessLimits, AFileSizeLimitBelowTheRingsIsReported) {
  EXPECT_TRUE(
      advice_has(RLIMIT_FSIZE, 1024, "raise ulimit -f: this process may write files of 1 "));
}

TEST(ProcessLimits, AnAddressSpaceLimitIsReported) {
  EXPECT_TRUE(
      advice_has(RLIMIT_AS, rlim_t{4} << 30U, "lift ulimit -v: this process may have 4096"));
}

}  // namespace
}  // namespace ztcp::link
