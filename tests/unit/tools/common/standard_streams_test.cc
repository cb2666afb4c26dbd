// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/standard_streams.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ztcp::tools {
namespace {

// Exits with the number of the failed check.
[[noreturn]] void run_with_closed(int first, int second) {
  ::close(first);
  ::close(second);
  keep_standard_streams();
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) ::_exit(1 + fd);
  const int next = ::open("/dev/zero", O_RDONLY);
  ::_exit(next > STDERR_FILENO ? 0 : 10 + next);
}

TEST(StandardStreams, OpenedFilesNeverGetTheirNumbers) {
  EXPECT_EXIT(run_with_closed(STDOUT_FILENO, STDERR_FILENO), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(run_with_closed(STDIN_FILENO, STDOUT_FILENO), testing::ExitedWithCode(0), "");
}

TEST(StandardStreams, OpenStreamsAreNotChanged) {
  const int before = ::dup(STDOUT_FILENO);
  ::close(before);
  keep_standard_streams();
  const int after = ::dup(STDOUT_FILENO);
  ::close(after);
  EXPECT_EQ(after, before) << "nothing is left open";
}

[[noreturn]] void print_into(const char* path) {
  ::dup2(::open(path, O_WRONLY), STDOUT_FILENO);
  std::fputs("x", stdout);
  std::exit(has_kept_output("prog") ? 0 : 1);
}

TEST(StandardStreams, LostOutputIsReported) {
  EXPECT_EXIT(print_into("/dev/null"), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(print_into("/dev/full"), testing::ExitedWithCode(1), "prog: not all of its output");
}

[[noreturn]] void print_into_a_pipe_without_a_reader() {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(2);
  ::close(ends[0]);
  std::signal(SIGPIPE, SIG_IGN);
  ::dup2(ends[1], STDOUT_FILENO);
  std::fputs("x", stdout);
  std::exit(has_kept_output("prog") ? 0 : 1);
}

TEST(StandardStreams, APipeWithoutAReaderIsNoFullDisk) {
  EXPECT_EXIT(print_into_a_pipe_without_a_reader(), testing::ExitedWithCode(1),
              "prog: .*the program that read the pipe has ended");
}

[[noreturn]] void flush_into_a_full_disk() {
  ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
  std::fputs("x", stdout);
  std::fflush(stdout);
  std::exit(has_kept_output("prog") ? 0 : 1);
}

TEST(StandardStreams, OutputLostInAnEarlierFlushIsReported) {
  EXPECT_EXIT(flush_into_a_full_disk(), testing::ExitedWithCode(1), "prog: not all of its output");
}

}  // namespace
}  // namespace ztcp::tools
