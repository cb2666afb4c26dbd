// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/load.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "config/environment.h"
#include "config/file/parse_state.h"
#include "transport/core/shell_word.h"

namespace ztcp::config {
namespace {

// -1 and errno, or the number of bytes read into `text`: more than kMaxFileBytes where the file is
// too large.
ssize_t read_all(int fd, std::string& text) {
  std::array<char, 8192> buffer;
  while (text.size() <= kMaxFileBytes) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? -1 : static_cast<ssize_t>(text.size());
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return static_cast<ssize_t>(text.size());
}

const char* kind_of(const struct stat& facts) {
  if (S_ISDIR(facts.st_mode)) return "a folder";
  if (S_ISFIFO(facts.st_mode)) return "a pipe";
  return S_ISSOCK(facts.st_mode) ? "a socket" : "a device";
}

std::string mend_reading(int why, const std::string& path) {
  if (why == EMFILE) return "this process may open no more files: raise ulimit -n";
  if (why == ENFILE) return "this machine may open no more files: raise sysctl fs.file-max";
  return fmt::format("ls -l {}, then make it readable for this user", shell_word(path));
}

}  // namespace

LoadResult not_loaded(LoadFailure failure, const std::string& path, Problem problem) {
  LoadResult result;
  result.failure = failure;
  result.path = path;
  result.problems.push_back(std::move(problem));
  return result;
}

LoadResult load(const std::string& path) {
  // Looked at before it is opened: a pipe would hold us up, and a device may act on being opened.
  struct stat facts {};
  const bool there = ::stat(path.c_str(), &facts) == 0;
  if (there && !S_ISREG(facts.st_mode))
    return not_loaded(LoadFailure::kUnreadable, path,
                      {path, fmt::format("is {}, no file", kind_of(facts)),
                       fmt::format("ls -ld {}, then name the config file", shell_word(path))});
  const int fd = there ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
    return not_loaded(LoadFailure::kMissing, path,
                      {path, "no such file: ztcp is not set up on this host",
                       "ztcp_setup, or export ZTCP_CONFIG=FILE"});
  std::string text;
  if (fd < 0 || read_all(fd, text) < 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return not_loaded(
        LoadFailure::kUnreadable, path,
        {path, fmt::format("can't be read: {}", std::strerror(error)), mend_reading(error, path)});
  }
  ::close(fd);
  LoadResult result = parse(text, path);
  if (result.fabric) result.fabric->on_error = read_environment().on_error;
  return result;
}

}  // namespace ztcp::config
