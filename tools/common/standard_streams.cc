// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/standard_streams.h"

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace ztcp::tools {

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
  std::fprintf(stderr,
               "%s: not all of its output could be written to standard output: is the disk full? "
               "df shows it\n",
               program);
  return false;
}

}  // namespace ztcp::tools
