// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run_lock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <thread>

#include <fmt/format.h>

namespace ztcp::setup {

tl::expected<RunLock, config::Problem> RunLock::take(std::chrono::milliseconds patience,
                                                     const std::string& path) {
  const auto refuse = [&](std::string what, std::string mend) {
    return tl::unexpected(config::Problem{path, std::move(what), std::move(mend)});
  };
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return refuse(std::strerror(errno), fmt::format("ls -l {}", path));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    struct flock wish {};
    wish.l_type = F_WRLCK;
    wish.l_whence = SEEK_SET;
    if (::fcntl(file.get(), F_SETLK, &wish) == 0) return RunLock(std::move(file));
    if (errno != EAGAIN && errno != EACCES) return refuse(std::strerror(errno), "");
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  struct flock holder {};
  holder.l_type = F_WRLCK;
  holder.l_whence = SEEK_SET;
  const bool known =
      ::fcntl(file.get(), F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0;
  return refuse(known ? fmt::format("another ztcp_setup is at work: process {}", holder.l_pid)
                      : "another ztcp_setup is at work, in another container",
                "wait for it, then run this again");
}

}  // namespace ztcp::setup
