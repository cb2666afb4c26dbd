// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/fork_guard.h"

#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/fd.h"

namespace ztcp {
namespace {

bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_open_here(int fd) { return fcntl(fd, F_GETFD) >= 0; }

int temporary_file() { return memfd_create("test", 0); }

TEST(ForkGuard, ClosesInTheChildOnly) {
  const Fd fd(temporary_file());
  EXPECT_TRUE(in_child([&] { return !is_open_here(fd.get()); }));
  EXPECT_TRUE(is_open_here(fd.get()));
  EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST(ForkGuard, TakesNoStandardStreamsNumber) {
  EXPECT_TRUE(in_child([] {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    const Fd fd(temporary_file());
    return fd.get() > STDERR_FILENO && !is_open_here(STDIN_FILENO) &&
           in_child([&] { return !is_open_here(fd.get()); });
  }));
}

TEST(ForkGuard, TheChildsCopyOfTheOwnerDoesNotCloseAReusedNumber) {
  auto* fd = new Fd(temporary_file());
  const int number = fd->get();
  EXPECT_TRUE(in_child([&] {
    const int other = temporary_file();  // Gets the number that has become free.
    delete fd;
    return other == number && is_open_here(other);
  }));
  delete fd;
  EXPECT_FALSE(is_open_here(number));
}

TEST(ForkGuard, DoesNotCloseAReusedNumber) {
  const int number = temporary_file();
  close_in_children(number);
  close(number);  // As a driver does, without notice.
  const int other = temporary_file();
  ASSERT_EQ(other, number);
  EXPECT_TRUE(in_child([&] { return is_open_here(other); }));
  close(other);
}

TEST(ForkGuard, FindsDescriptorsThatADriverOpened) {
  const int old_one = temporary_file();
  const DescriptorSweep sweep;
  const int new_one = temporary_file();
  const int unrelated = open("/dev/null", O_RDWR | O_CLOEXEC);
  sweep.guard_new({"/memfd:test", "/dev/vfio/"});
  EXPECT_TRUE(in_child(
      [&] { return is_open_here(old_one) && !is_open_here(new_one) && is_open_here(unrelated); }));
  for (const int fd : {old_one, new_one, unrelated}) {
    forget_in_children(fd);
    close(fd);
  }
}

}  // namespace
}  // namespace ztcp
