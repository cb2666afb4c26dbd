// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Keeps our descriptors off the numbers of the standard streams. A process that was started without
// one of them gives its number to what it opens next, and whoever prints would print into that: a
// connection.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace ztcp {

// The same file by another number, close-on-exec, if it has one of theirs. What failed (-1, with
// errno) stays that; so does the number where none is left.
inline int off_standard_streams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (other < 0) return fd;
  close(fd);
  return other;
}

}  // namespace ztcp
