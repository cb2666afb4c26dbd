// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/claim.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ztcp::link {
namespace {

struct FileId {
  dev_t device;
  ino_t inode;
  friend bool operator==(const FileId&, const FileId&) = default;
};

// What this process holds, so that it never opens one of these files again. A forked child holds
// nothing: its list is that of another pid.
struct Held {
  std::mutex mutex;
  pid_t pid = getpid();
  std::vector<FileId> files;
};
Held& held() {
  static auto* instance = new Held;
  return *instance;
}

bool contains(const Held& list, const FileId& id) {
  return list.pid == getpid() &&
         std::find(list.files.begin(), list.files.end(), id) != list.files.end();
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

}  // namespace

std::string to_string(const ClaimHolder& holder) {
  if (holder.pid == 0) return "a process that can't be seen from here (another container?)";
  return fmt::format("process {} ({})", holder.pid, holder.command);
}

Result<Claim> Claim::take(const std::string& run_dir, const std::string& name,
                          ClaimHolder* holder) {
  if (mkdir(run_dir.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno("mkdir run_dir");
  const std::string path = run_dir + "/" + name + ".lock";

  Held& list = held();
  const std::scoped_lock lock(list.mutex);
  const auto busy_here = [&]() -> Result<Claim> {
    if (holder != nullptr) *holder = {getpid(), command_of(getpid())};
    return fail(Errc::kBusy, "claim");
  };
  struct stat file {};
  if (stat(path.c_str(), &file) == 0 && contains(list, {file.st_dev, file.st_ino}))
    return busy_here();

  // Other users' processes lock it too, whatever our umask: the folder says who may come in.
  const int raw = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (raw < 0) return fail_errno("open claim");
  Fd fd(raw);
  if (fstat(raw, &file) != 0) return fail_errno("fstat claim");
  if (file.st_uid == geteuid()) fchmod(raw, 0666);

  struct flock wish {};
  wish.l_type = F_WRLCK;
  wish.l_whence = SEEK_SET;  // From 0, to the end: the whole file.
  if (fcntl(raw, F_SETLK, &wish) != 0) {
    const int why = errno;
    if (why != EAGAIN && why != EACCES) return fail(Errc::kSystem, "F_SETLK", why);
    describe_holder(raw, holder);
    return fail(Errc::kBusy, "claim", why);
  }
  if (list.pid != getpid()) {
    list.pid = getpid();
    list.files.clear();
  }
  list.files.push_back({file.st_dev, file.st_ino});
  return Claim(std::move(fd), file.st_dev, file.st_ino);
}

Claim::Claim(Fd fd, dev_t device, ino_t inode)
    : fd_(std::move(fd)), device_(device), inode_(inode) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

Claim::~Claim() {
  if (!fd_) return;
  Held& list = held();
  const std::scoped_lock lock(list.mutex);
  if (list.pid != getpid()) return;
  std::erase(list.files, FileId{device_, inode_});
  fd_ = Fd();  // Closed under the lock: from here on the file may be opened again.
}

}  // namespace ztcp::link
