// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/fork_guard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace ztcp {
namespace {

struct Entry {
  int fd;
  dev_t device;
  ino_t inode;
};

struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
};

// Never destroyed: forks may happen while the process ends.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

bool is_still(const Entry& entry) {
  struct stat now {};
  return fstat(entry.fd, &now) == 0 && now.st_dev == entry.device && now.st_ino == entry.inode;
}

// The lock is held across fork(), so the child finds a consistent list. The child's handler makes
// system calls only.
void before_fork() { registry().mutex.lock(); }
void after_fork_in_parent() { registry().mutex.unlock(); }
void after_fork_in_child() {
  for (const Entry& entry : registry().entries)
    if (is_still(entry)) close(entry.fd);
  registry().entries.clear();
  registry().mutex.unlock();
}

void install_handlers() {
  static const int installed = [] {
    registry();
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }();
  static_cast<void>(installed);
}

template <class Visit>
void for_each_descriptor(const Visit& visit) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* item = readdir(folder)) {
    int fd = -1;
    const std::string_view name = item->d_name;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), fd);
    if (parsed.ec == std::errc{} && fd != dirfd(folder)) visit(fd);
  }
  closedir(folder);
}

std::string target_of(int fd) {
  std::array<char, 256> target;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), target.data(), target.size());
  return {target.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace

void close_in_children(int fd) {
  struct stat now {};
  if (fstat(fd, &now) != 0) return;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  install_handlers();
  const std::scoped_lock lock(registry().mutex);
  auto& entries = registry().entries;
  std::erase_if(entries, [fd](const Entry& e) { return e.fd == fd; });
  // Entries that a driver has closed are removed only when the list would grow: checking all of
  // them each time would cost a process with thousands of sockets seconds.
  if (entries.size() == entries.capacity())
    std::erase_if(entries, [](const Entry& e) { return !is_still(e); });
  entries.push_back({fd, now.st_dev, now.st_ino});
}

bool forget_in_children(int fd) {
  const std::scoped_lock lock(registry().mutex);
  return std::erase_if(registry().entries, [fd](const Entry& e) { return e.fd == fd; }) > 0;
}

DescriptorSweep::DescriptorSweep() {
  for_each_descriptor([this](int fd) { before_.push_back(fd); });
}

void DescriptorSweep::guard_new(std::initializer_list<std::string_view> target_prefixes) const {
  for_each_descriptor([&](int fd) {
    if (std::find(before_.begin(), before_.end(), fd) != before_.end()) return;
    const std::string target = target_of(fd);
    for (const std::string_view prefix : target_prefixes)
      if (target.starts_with(prefix)) return close_in_children(fd);
  });
}

}  // namespace ztcp
