// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ztcp::setup {
namespace {

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  // mkostemp() gives 0600, but other users' jobs read the config.
  if (::fchmod(fd, 0644) != 0) return fail_errno("fchmod");
  if (::fsync(fd) != 0) return fail_errno("fsync");
  return {};
}

// The rename is on disk only when the folder is.
void sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

Status write_atomically(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return fail_errno("mkostemp");
  Status status = write_all(fd, text);
  if (::close(fd) != 0 && status) status = fail_errno("close");
  if (status && std::rename(temporary.c_str(), path.c_str()) != 0) status = fail_errno("rename");
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  sync_folder_of(path);
  return {};
}

}  // namespace ztcp::setup
