// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/write_all.h"

namespace ztcp::tools {
namespace {

Status write_durably(int fd, std::string_view text) {
  ZTCP_CHECK(write_all(fd, text));
  // mkostemp() gives 0600, but other users' jobs read the config.
  if (::fchmod(fd, 0644) != 0) return fail_errno("fchmod");
  if (::fsync(fd) != 0) return fail_errno("fsync");
  return {};
}

// Closes `fd`. Renames the temporary file, or removes it.
Status put_in_place(int fd, Status written, const std::string& temporary, const std::string& path) {
  if (::close(fd) != 0 && written) written = fail_errno("close");
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) written = fail_errno("rename");
  if (!written) ::unlink(temporary.c_str());
  return written;
}

constexpr int kNoTrap = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

// True for an empty file, or one that begins like JSON.
bool may_be_replaced(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | kNoTrap);
  if (fd < 0) return false;
  char first = '{';
  const bool good = ::read(fd, &first, 1) >= 0 && (first == '{' || first == '[');
  ::close(fd);
  return good;
}

tl::unexpected<Error> link_to_file() {
  return fail(Errc::kRefused, "it is a symbolic link to a file; name the file itself");
}

tl::unexpected<Error> other_content() {
  return fail(Errc::kRefused, "its content is not a report; not changed, name another file");
}

Status write_to_device(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | kNoTrap);
  if (fd < 0) return fail_errno("open");
  struct stat facts {};
  Status status = link_to_file();
  if (::fstat(fd, &facts) != 0) {
    status = fail_errno("fstat");
  } else if (S_ISBLK(facts.st_mode)) {
    status = fail(Errc::kRefused, "it is a disk; name a file");
  } else if (!S_ISREG(facts.st_mode)) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);  // Wait for the reader of a pipe.
    status = write_all(fd, text);
  }
  ::close(fd);
  return status;
}

// A path for the report before its rename. The name contains this process's id, so a file left by
// an earlier process with the same id can be removed.
std::string temporary_of(const std::string& path) {
  return path + "." + std::to_string(::getpid()) + ".tmp";
}

Result<int> open_temporary(const std::string& temporary) {
  ::unlink(temporary.c_str());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return fail_errno("open");
  return fd;
}

// A rename is durable only after its folder is synced.
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
  ZTCP_CHECK(put_in_place(fd, write_durably(fd, text), temporary, path));
  sync_folder_of(path);
  return {};
}

Status write_report(const std::string& path, std::string_view json) {
  struct stat facts {};
  const bool there = ::lstat(path.c_str(), &facts) == 0;
  if (!there && errno != ENOENT) return fail_errno("open");
  if (there && !S_ISREG(facts.st_mode)) return write_to_device(path, json);
  if (there && !may_be_replaced(path)) return other_content();
  const std::string temporary = temporary_of(path);
  const int fd = ZTCP_TRY(open_temporary(temporary));
  return put_in_place(fd, write_all(fd, json), temporary, path);
}

Status can_write_report(const std::string& path) {
  struct stat facts {};
  const bool there = ::lstat(path.c_str(), &facts) == 0;
  if (!there && errno != ENOENT) return fail_errno("open");
  if (there && S_ISDIR(facts.st_mode)) return fail(Errc::kSystem, "open", EISDIR);
  if (there && S_ISLNK(facts.st_mode)) {
    if (::stat(path.c_str(), &facts) != 0) return fail_errno("stat");
    if (S_ISREG(facts.st_mode)) return link_to_file();
    return {};
  }
  if (there && !S_ISREG(facts.st_mode)) return {};
  if (there && !may_be_replaced(path)) return other_content();
  const std::string temporary = temporary_of(path);
  const int fd = ZTCP_TRY(open_temporary(temporary));
  ::close(fd);
  ::unlink(temporary.c_str());
  return {};
}

}  // namespace ztcp::tools
