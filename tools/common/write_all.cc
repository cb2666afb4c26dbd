// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/write_all.h"

#include <cerrno>
#include <unistd.h>

namespace ztcp::tools {

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace ztcp::tools
