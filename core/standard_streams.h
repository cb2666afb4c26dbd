// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Keeps our descriptors off the numbers of the standard streams. In a process that was started
// without one of them, the next open() gets its number, and a later print would go into that
// descriptor: a connection.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace ztcp {

// Moves `fd` to another number, close-on-exec, if it has that of a standard stream. Returns -1 with
// errno unchanged, and returns `fd` itself where no other number is free.
inline int off_standard_streams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (other < 0) return fd;
  close(fd);
  return other;
}

}  // namespace ztcp
