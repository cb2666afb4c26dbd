// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace ztcp::tools {

void keep_standard_streams() {
  // Each takes the lowest number that is free.
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = ::open("/dev/null", O_RDWR);
  if (opened > STDERR_FILENO) ::close(opened);
}

}  // namespace ztcp::tools
