// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Files of a LiveHost, including the kernel's virtual ones.
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/common/write_all.h"
#include "tools/ztcp_setup/live/live_host.h"

namespace ztcp::setup {
namespace {

Result<std::string> read_all(int fd) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("read");
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > Host::kLargestFile) return fail(Errc::kSystem, "read", EFBIG);
  }
}

// An O_PATH descriptor cannot be synced itself.
Status sync_folder(const Descriptor& folder) {
  const Descriptor open(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (open.get() < 0) return fail_errno("open");
  // Some file systems cannot sync folders.
  if (::fsync(open.get()) != 0 && errno != EINVAL) return fail_errno("fsync");
  return {};
}

Status own(int fd, const Ownership& ownership) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return fail_errno("fstat");
  // chown before chmod: chown clears the set-user bits of the mode.
  if ((facts.st_uid != ownership.user || facts.st_gid != ownership.group) &&
      ::fchown(fd, ownership.user, ownership.group) != 0)
    return fail_errno("chown");
  if (::fchmod(fd, ownership.mode) != 0) return fail_errno("chmod");
  return {};
}

}  // namespace

Result<std::string> LiveHost::read_file(const std::string& path) {
  const FolderEntry entry = ZTCP_TRY(paths_.find(path));
  // O_NONBLOCK: opening a pipe in its place must not block.
  const Descriptor file(::openat(entry.folder.get(), entry.name.c_str(),
                                 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ELOOP) return fail(Errc::kRefused, "open", ELOOP);
  if (file.get() < 0) return fail_errno("open");
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return fail_errno("fstat");
  if (!S_ISREG(facts.st_mode)) return fail(Errc::kRefused, "open", EINVAL);
  return read_all(file.get());
}

Status LiveHost::create(const std::string& path, const std::string& text, Ownership ownership) {
  const FolderEntry entry = ZTCP_TRY(paths_.find(path));
  // Created with mode 0600: other users must not read it before it is complete and has its owner.
  const Descriptor file(::openat(entry.folder.get(), entry.name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return fail_errno("open");
  ZTCP_CHECK(tools::write_all(file.get(), text));
  ZTCP_CHECK(own(file.get(), ownership));
  if (::fsync(file.get()) != 0) return fail_errno("fsync");
  return {};
}

Status LiveHost::rename(const std::string& from, const std::string& to) {
  const FolderEntry old_entry = ZTCP_TRY(paths_.find(from));
  const FolderEntry new_entry = ZTCP_TRY(paths_.find(to));
  if (::renameat(old_entry.folder.get(), old_entry.name.c_str(), new_entry.folder.get(),
                 new_entry.name.c_str()) != 0)
    return fail_errno("rename");
  return sync_folder(new_entry.folder);
}

Status LiveHost::remove(const std::string& path) {
  const FolderEntry entry = ZTCP_TRY(paths_.find(path));
  if (::unlinkat(entry.folder.get(), entry.name.c_str(), 0) != 0) return fail_errno("unlink");
  return sync_folder(entry.folder);
}

Status LiveHost::make_folder(const std::string& path, Ownership ownership) {
  const FolderEntry entry = ZTCP_TRY(paths_.find(path));
  if (::mkdirat(entry.folder.get(), entry.name.c_str(), 0700) != 0) return fail_errno("mkdir");
  const Descriptor made(::openat(entry.folder.get(), entry.name.c_str(),
                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (made.get() < 0) return fail_errno("open");
  ZTCP_CHECK(own(made.get(), ownership));
  return sync_folder(entry.folder);
}

Status LiveHost::remove_folder(const std::string& path) {
  const FolderEntry entry = ZTCP_TRY(paths_.find(path));
  if (::unlinkat(entry.folder.get(), entry.name.c_str(), AT_REMOVEDIR) != 0)
    return fail(Errc::kSystem, "rmdir", errno == EEXIST ? ENOTEMPTY : errno);
  return sync_folder(entry.folder);
}

Status LiveHost::remove_locks(const std::string& folder) {
  const FolderEntry entry = ZTCP_TRY(paths_.find(folder));
  const Descriptor open(::openat(entry.folder.get(), entry.name.c_str(),
                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (open.get() < 0) return fail_errno("open");
  config::LiveMachine machine;
  for (const std::string& name : machine.list(fmt::format("/proc/self/fd/{}", open.get()))) {
    struct stat facts {};
    if (!name.ends_with(".lock") ||
        ::fstatat(open.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(facts.st_mode))
      continue;
    // Removes the name, even if it names another file by now.
    if (::unlinkat(open.get(), name.c_str(), 0) != 0 && errno != ENOENT)
      return fail_errno("unlink");
  }
  return {};
}

Status LiveHost::set_ownership(const std::string& path, Ownership ownership) {
  const FolderEntry entry = ZTCP_TRY(paths_.find(path));
  // Devices must not be opened for this: opening a vfio group would take it.
  const Descriptor node(
      ::openat(entry.folder.get(), entry.name.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (node.get() < 0) return fail_errno("open");
  struct stat facts {};
  if (::fstat(node.get(), &facts) != 0) return fail_errno("fstat");
  if (S_ISLNK(facts.st_mode)) return fail(Errc::kRefused, "chown", ELOOP);
  if ((facts.st_uid != ownership.user || facts.st_gid != ownership.group) &&
      ::fchownat(node.get(), "", ownership.user, ownership.group, AT_EMPTY_PATH) != 0)
    return fail_errno("chown");
  // fchmod() takes no O_PATH descriptors; their names in /proc lead to the same file.
  if (::chmod(("/proc/self/fd/" + std::to_string(node.get())).c_str(), ownership.mode) != 0)
    return fail_errno("chmod");
  return {};
}

}  // namespace ztcp::setup
