// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/standard_streams.h"

#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace ztcp::tools {
namespace {

// False only for a pipe that no process reads.
bool has_reader(int fd) {
  pollfd state{fd, POLLOUT, 0};
  return ::poll(&state, 1, 0) < 0 || (state.revents & (POLLERR | POLLHUP)) == 0;
}

}  // namespace

void keep_standard_streams() {
  // open() returns the lowest free number.
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = ::open("/dev/null", O_RDWR);
  if (opened > STDERR_FILENO) ::close(opened);
}

bool has_kept_output(const char* program) {
  // An earlier flush may have failed already.
  const bool is_flushed = std::fflush(stdout) == 0;
  if (is_flushed && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "%s: not all of its output could be written to standard output: %s\n",
               program,
               has_reader(STDOUT_FILENO) ? "is the disk full? df shows it"
                                         : "the program that read the pipe has ended");
  return false;
}

}  // namespace ztcp::tools
