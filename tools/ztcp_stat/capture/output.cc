// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/output.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "tools/common/write_all.h"
#include "tools/ztcp_stat/capture/pcapng.h"

namespace ztcp::capture {
namespace {

// A mistyped name may be that of any file.
bool may_be_replaced(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return false;
  if (!S_ISREG(file.st_mode) || file.st_size == 0) return true;
  std::uint32_t magic = 0;
  return pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) && magic == kPcapngMagic;
}

}  // namespace

tl::expected<Output, std::string> Output::open(const std::string& path) {
  if (path == "-") {
    if (isatty(STDOUT_FILENO) != 0)
      return tl::unexpected<std::string>(
          "stdout is a terminal: give -o FILE, or a pipe: ztcp_stat capture -o - | tcpdump -r -");
    return Output(Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)));
  }
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected(fmt::format("-o {}: {}", path, why));
  };
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd && errno != ELOOP)  // A pipe that may not be read, /dev/stderr.
    fd = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return refuse(errno == ELOOP ? "a link is not followed" : std::strerror(errno));
  if (!may_be_replaced(fd.get())) return refuse("holds something else than a capture");
  if (ftruncate(fd.get(), 0) != 0 && errno != EINVAL) return refuse(std::strerror(errno));
  return Output(std::move(fd));
}

Output::Written Output::write(std::string& text) {
  if (text.empty()) return Written::kAll;
  const Status written = tools::write_all(fd_.get(), text);
  text.clear();
  if (written) return Written::kAll;
  sys_errno_ = written.error().sys_errno;
  return sys_errno_ == EPIPE ? Written::kReaderIsGone : Written::kFailed;
}

}  // namespace ztcp::capture
