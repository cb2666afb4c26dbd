// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/live_machine.h"

#include <algorithm>
#include <array>
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "config/machine/cpu_list.h"
#include "config/machine/readings.h"
#include "core/descriptor.h"

namespace ztcp::config {
namespace {

// The largest files read are libraries. Endless devices and the like are cut earlier.
constexpr std::size_t kLargestFile = 256U << 20;
constexpr std::size_t kLargestOther = 1U << 20;

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kFile;
  if (S_ISDIR(mode)) return FileKind::kFolder;
  if (S_ISLNK(mode)) return FileKind::kLink;
  if (S_ISSOCK(mode)) return FileKind::kSocket;
  return S_ISFIFO(mode) ? FileKind::kPipe : FileKind::kOther;
}

}  // namespace

FileFacts LiveMachine::read_facts(const std::string& path, int flags) const {
  struct stat facts {};
  struct stat top {};
  if (::fstatat(AT_FDCWD, at(path).c_str(), &facts, flags) != 0) return {};
  FileFacts found{kind_of(facts.st_mode), {facts.st_mode & 07777U, facts.st_uid, facts.st_gid}};
  if (found.kind == FileKind::kFile) {
    found.size_bytes = static_cast<std::uint64_t>(facts.st_size);
    found.modified_unix_s = facts.st_mtim.tv_sec;
  }
  if (root_.empty() || ::stat(root_.c_str(), &top) != 0) return found;
  if (facts.st_uid == top.st_uid) found.ownership.user = 0;
  if (facts.st_gid == top.st_gid) found.ownership.group = 0;
  return found;
}

FileFacts LiveMachine::facts(const std::string& path) {
  return read_facts(path, AT_SYMLINK_NOFOLLOW);
}

FileFacts LiveMachine::facts_behind(const std::string& path) { return read_facts(path, 0); }

Result<std::string> LiveMachine::read_value(const std::string& path) {
  // O_NONBLOCK: opening a pipe in its place must not block.
  const Descriptor file(::open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return fail_errno("open");
  struct stat facts {};
  const bool regular = ::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode);
  const std::size_t largest = regular ? kLargestFile : kLargestOther;
  std::string text;
  std::array<char, 16384> buffer;
  ssize_t count = 0;
  while (text.size() < largest && (count = ::read(file.get(), buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  if (count < 0) return fail_errno("read");
  return text;
}

std::optional<std::string> LiveMachine::link_target(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(at(path).c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(length));
}

std::vector<std::string> LiveMachine::list(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(at(folder), error), end; !error && it != end;
       it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool LiveMachine::may_access(const std::string& path, int mode) {
  return ::faccessat(AT_FDCWD, at(path).c_str(), mode, AT_EACCESS) == 0;
}

std::vector<std::uint32_t> LiveMachine::allowed_cpus() {
  if (!root_.empty()) return parse_cpu_list(status_field(*this, "Cpus_allowed_list").value_or(""));
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (const pid_t thread : {pid_t{0}, ::getpid()}) {
    cpu_set_t set;
    if (::sched_getaffinity(thread, sizeof set, &set) == 0) CPU_OR(&allowed, &allowed, &set);
  }
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace ztcp::config
