// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/claim.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/fd.h"

namespace ztcp::link {
namespace {

struct FileId {
  dev_t device;
  ino_t inode;
  friend bool operator==(const FileId&, const FileId&) = default;
};

// One lock file, and the NICs that this process has claimed through it.
struct Lock {
  FileId id;
  Fd fd;
  std::vector<std::string> nics;
};

// Claims of this process, so that it never opens one of these files again. A forked child holds
// none: its list has another pid.
struct Held {
  std::mutex mutex;
  pid_t pid = getpid();
  std::vector<Lock> locks;

  auto find(const FileId& id) {
    return std::find_if(locks.begin(), locks.end(),
                        [&](const Lock& lock) { return lock.id == id; });
  }
};
Held& held() {
  static auto* instance = new Held;
  return *instance;
}

constexpr const char* kNotALockFile = "not a lock file";

// In a folder that others may write to, the name may be that of any file.
bool may_be_lock(const struct stat& file) { return S_ISREG(file.st_mode) && file.st_nlink == 1; }

// In a shared folder every user with access may lock, independent of our umask: other users'
// processes too. In a private folder the file is private as well: if run_dir was made a link to a
// system folder, no world-writable file appears there.
mode_t lock_mode(const struct stat& folder) {
  const bool shared = folder.st_uid != geteuid() || (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return shared ? 0666 : 0600;
}

// Uses the folder's descriptor, since its path may lead elsewhere at the next use.
Result<Fd> open_lock(int folder, const std::string& name) {
  int raw = openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (raw >= 0) {
    // An existing file keeps its mode.
    struct stat facts {};
    if (fstat(folder, &facts) == 0) fchmod(raw, lock_mode(facts));
  } else if (errno == EEXIST) {
    // Without O_CREAT, which fs.protected_regular forbids for another user's file in a sticky
    // folder.
    raw = openat(folder, name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  }
  if (raw < 0) return fail_errno("open");
  return Fd(raw);
}

Result<Fd> open_run_dir(const std::string& run_dir) {
  if (mkdir(run_dir.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno("mkdir");
  const int raw = open(run_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (raw < 0) return fail_errno("open");
  return Fd(raw);
}

std::string file_name(const std::string& nic, const std::string& group) {
  return fmt::format("{}.lock", group.empty() ? nic : "group-" + group);
}

std::string command_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string command;
  std::getline(file, command);
  return command;
}

void describe_holder(int fd, ClaimHolder* holder) {
  if (holder == nullptr) return;
  struct flock query {};
  query.l_type = F_WRLCK;
  query.l_whence = SEEK_SET;
  *holder = {};
  // The kernel gives 0 or -1 for a process that this pid namespace cannot see.
  if (fcntl(fd, F_GETLK, &query) != 0 || query.l_type == F_UNLCK || query.l_pid <= 0) return;
  holder->pid = query.l_pid;
  holder->command = command_of(query.l_pid);
}

const char* mend_claim(int why) {
  switch (why) {
    case ENOTDIR:
      return "run_dir must be a folder: move the file of that name away, or name another run_dir";
    case ENOENT:
      return "make the folder above run_dir";
    case ENOSPC:
    case EDQUOT:
      return "make room there (df -h, df -i)";
    case EROFS:
      return "mount it writable, or name another run_dir";
    case EMFILE:
      return "this process may open no more files: raise ulimit -n";
    case ENFILE:
      return "this machine may open no more files: raise sysctl fs.file-max";
    default:
      return "every process of the job must be able to write there";
  }
}

}  // namespace

std::string to_string(const ClaimHolder& holder) {
  if (holder.pid == 0) return "a process that can't be seen from here (another container?)";
  return fmt::format("process {} ({})", holder.pid, holder.command);
}

std::string lock_path(const std::string& run_dir, const std::string& nic,
                      const std::string& group) {
  return fmt::format("{}/{}", run_dir, file_name(nic, group));
}

std::string describe_failed_claim(const Error& error, const std::string& lock_path) {
  if (error.where == kNotALockFile)
    return fmt::format(
        "{} is no lock file of ztcp but a link, a file of several names or a device; remove it, "
        "and let only users of the NIC write to that folder",
        lock_path);
  return fmt::format("{}: {} failed: {}; {}", lock_path, error.where,
                     std::strerror(error.sys_errno), mend_claim(error.sys_errno));
}

Result<Claim> Claim::take(const std::string& run_dir, const std::string& nic,
                          const std::string& group, ClaimHolder* holder) {
  const Fd folder = ZTCP_TRY(open_run_dir(run_dir));
  const std::string name = file_name(nic, group);

  Held& list = held();
  const std::scoped_lock guard(list.mutex);
  if (list.pid != getpid()) {
    list.pid = getpid();
    list.locks.clear();
  }
  struct stat file {};
  if (fstatat(folder.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!may_be_lock(file)) return fail(Errc::kSystem, kNotALockFile);
    if (const auto ours = list.find({file.st_dev, file.st_ino}); ours != list.locks.end()) {
      if (std::find(ours->nics.begin(), ours->nics.end(), nic) != ours->nics.end()) {
        if (holder != nullptr) *holder = {getpid(), command_of(getpid())};
        return fail(Errc::kBusy, "claim");
      }
      ours->nics.push_back(nic);
      return Claim(file.st_dev, file.st_ino, nic);
    }
  }

  Fd fd = ZTCP_TRY(open_lock(folder.get(), name));
  if (fstat(fd.get(), &file) != 0) return fail_errno("fstat");
  if (!may_be_lock(file)) return fail(Errc::kSystem, kNotALockFile);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;  // 0 means to the end: the whole file.
  if (fcntl(fd.get(), F_SETLK, &lock) != 0) {
    const int why = errno;
    if (why != EAGAIN && why != EACCES) return fail(Errc::kSystem, "F_SETLK", why);
    describe_holder(fd.get(), holder);
    return fail(Errc::kBusy, "claim", why);
  }
  list.locks.push_back({{file.st_dev, file.st_ino}, std::move(fd), {nic}});
  return Claim(file.st_dev, file.st_ino, nic);
}

Claim::Claim(dev_t device, ino_t inode, std::string nic)
    : device_(device), inode_(inode), nic_(std::move(nic)) {}

Claim::Claim(Claim&& other) noexcept
    : device_(other.device_), inode_(other.inode_), nic_(std::exchange(other.nic_, {})) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(nic_, other.nic_);
  return *this;
}

Claim::~Claim() {
  if (nic_.empty()) return;
  Held& list = held();
  const std::scoped_lock guard(list.mutex);
  if (list.pid != getpid()) return;
  const auto ours = list.find({device_, inode_});
  if (ours == list.locks.end()) return;
  std::erase(ours->nics, nic_);
  // Closed under the mutex: afterwards the file may be opened again.
  if (ours->nics.empty()) list.locks.erase(ours);
}

}  // namespace ztcp::link
