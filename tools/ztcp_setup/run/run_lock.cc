// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/run_lock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "config/machine/live_machine.h"
#include "config/machine/readings.h"

namespace ztcp::setup {
namespace {

// Locks of one byte each.
enum class Byte : off_t { kRun, kWork };

struct flock lock_of(Byte byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

bool take_byte(int file, Byte byte) {
  struct flock lock = lock_of(byte);
  // The first lock belongs to the process, the second to the open file, which children share.
  return ::fcntl(file, byte == Byte::kRun ? F_SETLK : F_OFD_SETLK, &lock) == 0;
}

// The process of the run that has the lock; 0: none, or one in another container.
pid_t holder_of_run(int file) {
  struct flock lock = lock_of(Byte::kRun);
  const bool known = ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  return known ? lock.l_pid : 0;
}

// "process 4711 (update-grub)": holders of the second lock.
std::vector<std::string> holders_of_work(const std::string& path) {
  std::vector<std::string> holders;
  config::LiveMachine machine;
  for (const std::string& pid : machine.list("/proc"))
    for (const std::string& fd : machine.list("/proc/" + pid + "/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink("/proc/" + pid + "/fd/" + fd, gone) != path) continue;
      const auto facts = machine.read_value("/proc/" + pid + "/fdinfo/" + fd);
      if (!facts || facts->find("OFDLCK") == std::string::npos) continue;
      holders.push_back(
          fmt::format("process {} ({})", pid,
                      config::read_line(machine, "/proc/" + pid + "/comm").value_or("?")));
      break;
    }
  return holders;
}

}  // namespace

Result<RunLock, config::Problem> RunLock::take(std::chrono::milliseconds timeout,
                                               const std::string& path) {
  const auto refuse = [&](std::string what, std::string mend) {
    return tl::unexpected(config::Problem{path, std::move(what), std::move(mend)});
  };
  // Without O_CLOEXEC: programs inherit it.
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (file.get() < 0) return refuse(std::strerror(errno), fmt::format("ls -l {}", path));
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  bool ours = false;
  for (;;) {
    ours = take_byte(file.get(), Byte::kRun);
    if (ours && take_byte(file.get(), Byte::kWork)) return RunLock(std::move(file));
    if (errno != EAGAIN && errno != EACCES)
      return refuse(std::strerror(errno), fmt::format("findmnt -T {}", path));
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  const std::string mend = "wait for it, then run this again";
  if (!ours) {
    const pid_t holder = holder_of_run(file.get());
    return refuse(holder > 0 ? fmt::format("another ztcp_setup is running: process {}", holder)
                             : "another ztcp_setup is running in another container",
                  mend);
  }
  const auto holders = holders_of_work(path);
  return refuse(fmt::format("a program that an earlier ztcp_setup started is still running: {}",
                            holders.empty() ? std::string("in another container")
                                            : fmt::format("{}", fmt::join(holders, ", "))),
                mend);
}

}  // namespace ztcp::setup
