// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// In children: this process needs its own.
#include "core/standard_streams.h"

#include <cerrno>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "core/descriptor.h"

namespace ztcp {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// The result of body() in a process without standard streams.
template <class Body>
bool without_streams(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(StandardStreams, OurDescriptorsGetOtherNumbers) {
  EXPECT_TRUE(without_streams([] {
    const int plain = eventfd(0, 0);
    if (plain != STDIN_FILENO) return false;
    const Descriptor ours(plain);
    return ours.get() > STDERR_FILENO && fcntl(ours.get(), F_GETFD) == FD_CLOEXEC &&
           !is_open(STDIN_FILENO) && !is_open(STDOUT_FILENO) && !is_open(STDERR_FILENO);
  }));
}

TEST(StandardStreams, OtherNumbersStay) {
  const int number = eventfd(0, 0);
  ASSERT_GT(number, STDERR_FILENO);
  EXPECT_EQ(off_standard_streams(number), number);
  close(number);
}

TEST(StandardStreams, AFailureKeepsItsErrno) {
  errno = EMFILE;
  EXPECT_EQ(off_standard_streams(-1), -1);
  EXPECT_EQ(errno, EMFILE);
}

}  // namespace
}  // namespace ztcp
